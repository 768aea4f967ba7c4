package upgrade_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/preview"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// setUp is the SetupWithManager of an operator.
func setUp(mgr ctrl.Manager) error {
	return reconcile.For(mgr, reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(
		func(owner *policyv1.PodDisruptionBudget) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name}}
		})))).Complete()
}

// The main of this operator has a flag that prints the plan.
func ExamplePlan() {
	plan := flag.String("plan", "", "Print what this version would change in the cluster, as text, json or markdown, and exit: 0 nothing, 3 changes, 1 an error.")
	flag.Parse()
	run := func(options ctrl.Options) error {
		access, err := ctrl.GetConfig()
		if err != nil {
			return err
		}
		if *plan != "" {
			return upgrade.Plan(ctrl.SetupSignalHandler(), access, options, setUp, os.Stdout, upgrade.Options{Format: *plan})
		}
		mgr, err := reconcile.NewManager(access, options)
		if err != nil {
			return err
		}
		if err := setUp(mgr); err != nil {
			return err
		}
		return mgr.Start(ctrl.SetupSignalHandler())
	}
	if err := run(ctrl.Options{}); errors.Is(err, upgrade.ErrChanges) {
		os.Exit(3)
	} else if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// The plan is for the objects of one namespace, in a format for a pull request. It does not report progress.
func ExamplePlan_markdown() {
	err := upgrade.Plan(context.Background(), ctrl.GetConfigOrDie(), ctrl.Options{}, setUp, os.Stdout,
		upgrade.Options{Format: "markdown", Namespace: "staging", Progress: io.Discard})
	fmt.Println(errors.Is(err, upgrade.ErrChanges))
}

// The plan is only for the objects that are upgraded first.
func ExamplePlan_selected() {
	first := labels.SelectorFromSet(labels.Set{"example.com/ring": "canary"})
	err := upgrade.Plan(context.Background(), ctrl.GetConfigOrDie(), ctrl.Options{}, setUp, os.Stdout, upgrade.Options{Selector: first})
	fmt.Println(errors.Is(err, upgrade.ErrIncomplete))
}

// account is a user's own step, which creates an account in a database.
type account struct{ exists func(name string) bool }

func (a *account) Reconcile(context.Context, client.Client, *policyv1.PodDisruptionBudget) error {
	return nil // here it would create the account if it does not exist
}

// Preview returns what Reconcile would do, for plans.
func (a *account) Preview(_ context.Context, _ client.Client, owner *policyv1.PodDisruptionBudget) ([]preview.Change, error) {
	change := preview.Change{Kind: schema.GroupKind{Kind: "account"}, Name: types.NamespacedName{Name: owner.Name}, Action: "none"}
	if !a.exists(owner.Name) {
		change.Action, change.Effects = "create", []string{"the database gets an account"}
	}
	return []preview.Change{change}, nil
}

// A user's own step returns what it would do.
func ExampleChange() {
	step := &account{exists: func(name string) bool { return name == "old" }}
	for _, name := range []string{"old", "new"} {
		changes, err := step.Preview(context.Background(), nil, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}})
		fmt.Println(changes[0].Name.Name, changes[0].Action, changes[0].Effects, err)
	}
	// Output:
	// old none [] <nil>
	// new create [the database gets an account] <nil>
}
