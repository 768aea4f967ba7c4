package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// run makes one pass over a PodDisruptionBudget, which plays the custom resource here, and
// prints its conditions.
func run(steps ...reconcile.NamedStep[*budget]) {
	ctx := context.Background()
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f", Generation: 1}}
	c := fake.NewClientBuilder().WithObjects(b).WithStatusSubresource(b).Build()

	result, err := reconcile.New(c, steps...).Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	fmt.Println("again after", result.RequeueAfter.Truncate(time.Minute), err)
	if err := c.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
		fmt.Println(err)
	}
	for _, c := range b.Status.Conditions {
		fmt.Printf("%s %s %s %q\n", c.Type, c.Status, c.Reason, c.Message)
	}
}

func step(err error) reconcile.StepFunc[*budget] {
	return reconcile.Func(func(context.Context, client.Client, *budget) error { return err })
}

// A main calls this once for every kind.
func ExampleFor() {
	deployment := func(b *budget) *appsv1.Deployment {
		return ownedresources.NewDeployment(b, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
	}
	setup := func(mgr ctrl.Manager) error {
		return reconcile.For[*budget](mgr,
			reconcile.Named("workload", ownedresources.Ensure(ownedresources.Build(deployment))),
		).Complete()
	}
	fmt.Printf("%T\n", setup)
	// Output: func(manager.Manager) error
}

func ExampleNew() {
	run(reconcile.Named("all", step(nil)))
	// Output:
	// again after 0s <nil>
	// Ready True Succeeded ""
}

func ExampleWait() {
	run(
		reconcile.Named("certificate", step(reconcile.Wait("Issuing", 2*time.Minute, "the certificate is being issued"))),
		reconcile.Named("workload", step(nil), reconcile.Reporting("Available")),
	)
	// Output:
	// again after 2m0s <nil>
	// Available True Succeeded ""
	// Ready False Issuing "the certificate is being issued"
	// Reconciling True Issuing "the certificate is being issued"
}

func ExampleHalt() {
	run(
		reconcile.Named("database", step(reconcile.Halt(reconcile.Wait("Starting", 0, "the database is starting")))),
		reconcile.Named("workload", step(nil), reconcile.Reporting("Available")),
	)
	// Output:
	// again after 0s <nil>
	// Available Unknown Skipped "step \"database\" halted the pass"
	// Ready False Starting "the database is starting"
	// Reconciling True Starting "the database is starting"
}

func ExampleStalled() {
	run(reconcile.Named("check", step(reconcile.Stalled("BadName", errors.New("spec.name: a dot is not allowed")))))
	// Output:
	// again after 10m0s <nil>
	// Ready False BadName "spec.name: a dot is not allowed"
	// Stalled True BadName "spec.name: a dot is not allowed"
}

func ExampleOptional() {
	run(
		reconcile.Named("workload", step(nil)),
		reconcile.Named("dashboard", step(reconcile.Wait("NoGrafana", 0, "no Grafana in this cluster")),
			reconcile.Reporting("DashboardReady"), reconcile.Optional()),
	)
	// Output:
	// again after 0s <nil>
	// DashboardReady False NoGrafana "no Grafana in this cluster"
	// Ready True Succeeded ""
}
