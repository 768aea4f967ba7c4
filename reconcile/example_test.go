package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

// run makes one pass over a PodDisruptionBudget, which stands for a custom resource here, and
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

func step(err error) reconcile.Step[*budget] {
	return reconcile.Func(func(context.Context, client.Client, *budget) error { return err })
}

func ExampleNew() {
	run(reconcile.Named("all", step(nil)))
	// Output:
	// again after 0s <nil>
	// Ready True Succeeded ""
}

// main calls such a function once for each kind.
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

func ExampleWait() {
	run(
		reconcile.Named("certificate", step(reconcile.Wait("Issuing", 2*time.Minute, "the certificate is being issued"))),
		reconcile.Named("workload", step(nil)).Reporting("Available"),
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
		reconcile.Named("workload", step(nil)).Reporting("Available"),
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

func ExampleNamedStep_Optional() {
	run(
		reconcile.Named("workload", step(nil)),
		reconcile.Named("dashboard", step(reconcile.Wait("NoGrafana", 0, "no Grafana in this cluster"))).
			Reporting("DashboardReady").Optional(),
	)
	// Output:
	// again after 0s <nil>
	// DashboardReady False NoGrafana "no Grafana in this cluster"
	// Ready True Succeeded ""
}

// accounts is a step that keeps accounts in a service outside of the cluster.
type accounts map[string]bool

// Reconcile creates the account. Before that, the status records that the account is ours. So after a crash between the
// two, the account is neither forgotten nor mistaken for somebody else's.
func (a accounts) Reconcile(ctx context.Context, _ client.Client, b *budget) error {
	b.Status.ExpectedPods = 1 // in a type of your own, this is status.account
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	a[b.Name] = true
	fmt.Println("created the account", b.Name)
	return nil
}

// Finalize deletes the account. If the account is already gone, the cleanup succeeds.
func (a accounts) Finalize(_ context.Context, _ client.Client, b *budget) error {
	delete(a, b.Name)
	fmt.Println("dropped the account", b.Name)
	return nil
}

var _ reconcile.FinalizingStep[*budget] = accounts{}

// store is a fake API server with one object.
func store(annotations map[string]string, others ...client.Object) (client.Client, ctrl.Request) {
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f", Annotations: annotations}}
	c := fake.NewClientBuilder().WithObjects(append(others, b)...).WithStatusSubresource(b).Build()
	return c, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}
}

// The finalizer is added before the step runs, and removed when the cleanup has succeeded.
func ExampleFinalizingStep() {
	ctx := context.Background()
	c, request := store(nil)
	r := reconcile.New(c, reconcile.Named("account", accounts{}).Finalizer("example.com/account"))
	_, err := r.Reconcile(ctx, request)
	b := &budget{}
	fmt.Println(err, c.Get(ctx, request.NamespacedName, b), b.Finalizers)

	_ = c.Delete(ctx, b)
	_, err = r.Reconcile(ctx, request)
	fmt.Println(err)
	fmt.Println(c.Get(ctx, request.NamespacedName, b))
	// Output:
	// created the account web
	// <nil> <nil> [example.com/account]
	// dropped the account web
	// <nil>
	// poddisruptionbudgets.policy "web" not found
}

func ExampleCheckpoint() {
	ctx := context.Background()
	c, request := store(nil)
	r := reconcile.New(c, reconcile.Named("account", reconcile.Func(func(ctx context.Context, _ client.Client, b *budget) error {
		b.Status.ExpectedPods = 1
		if err := reconcile.Checkpoint(ctx); err != nil {
			return err
		}
		panic("a crash, right before the effect")
	})))
	_, _ = r.Reconcile(ctx, request)
	b := &budget{}
	fmt.Println(c.Get(ctx, request.NamespacedName, b), b.Status.ExpectedPods)
	// Output: <nil> 1
}

func ExampleNamedStep_Reads() {
	password := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password"}
	login := func(ctx context.Context, c client.Client, b *budget) error {
		value, version, err := secrets.Read(ctx, c, b.Namespace, password)
		if err != nil {
			return err // if the Secret is missing, err is a wait: the event of the Secret triggers the next pass
		}
		fmt.Println("log in with", value, "of", len(string(value)), "bytes, version", version)
		return nil
	}
	step := reconcile.Named("login", reconcile.Func(login)).
		Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName {
			return []types.NamespacedName{{Name: password.Name}}
		})

	run(step)
	c, request := store(nil, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "77aa"},
		Data:       map[string][]byte{"password": []byte("secret")},
	})
	_, err := reconcile.New(c, step).Reconcile(context.Background(), request)
	fmt.Println(err)
	// Output:
	// again after 0s <nil>
	// Ready False SecretNotFound "Secret shop/db does not exist"
	// Reconciling True SecretNotFound "Secret shop/db does not exist"
	// log in with (hidden) of 6 bytes, version 77aa/999
	// <nil>
}

func ExamplePatchAnnotations() {
	ctx := context.Background()
	c, request := store(map[string]string{"example.com/theirs": "stays", "example.com/old": "goes"})
	r := reconcile.New(c, reconcile.Named("note", reconcile.Func(func(ctx context.Context, c client.Client, b *budget) error {
		changed, err := reconcile.PatchAnnotations(ctx, c, b, map[string]string{"example.com/last": "2026-03-01"}, "example.com/old")
		fmt.Println("changed:", changed)
		return err
	})))
	for range 2 {
		_, _ = r.Reconcile(ctx, request)
	}
	b := &budget{}
	fmt.Println(c.Get(ctx, request.NamespacedName, b), b.Annotations)
	// Output:
	// changed: true
	// changed: false
	// <nil> map[example.com/last:2026-03-01 example.com/theirs:stays]
}

func Example_pausedAnnotation() {
	ctx := context.Background()
	c, request := store(map[string]string{reconcile.PausedAnnotation: "true"})
	r := reconcile.New(c, reconcile.Named("step", reconcile.Func(func(context.Context, client.Client, *budget) error {
		fmt.Println("the step runs")
		return nil
	})))
	b := &budget{}
	show := func() {
		_, _ = r.Reconcile(ctx, request)
		_ = c.Get(ctx, request.NamespacedName, b)
		for _, condition := range b.Status.Conditions {
			fmt.Println(condition.Type, condition.Status, condition.Message)
		}
	}
	show()
	b.Annotations = nil
	_ = c.Update(ctx, b)
	show()
	// Output:
	// Paused True nothing is done until the annotation opblocks.dev/paused is removed
	// the step runs
	// Ready True
}

// NewManager is called in main. If a permission is missing, Start returns a short error.
func ExampleNewManager() {
	config, err := ctrl.GetConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	mgr, err := reconcile.NewManager(config, ctrl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = reconcile.For[*budget](mgr, reconcile.Named("account", accounts{}).Finalizer("example.com/account")).Complete()
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	fmt.Println(err)
}

// The cache has only a hash of a ConfigMap of 64 KiB or more, and the manager's client reads the whole object.
func ExampleHashLargeValues() {
	config, err := ctrl.GetConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	mgr, err := reconcile.NewManager(config, ctrl.Options{Cache: reconcile.CacheOptions()}, reconcile.HashLargeValues(64<<10))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mgr.Start(ctrl.SetupSignalHandler()))
}
