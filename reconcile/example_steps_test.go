package reconcile_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

func ExampleFunc() {
	greet := func(_ context.Context, _ client.Client, b *budget) error {
		fmt.Println("hello,", b.Name)
		return nil
	}
	run(reconcile.Named("greet", reconcile.Func(greet)))
	// Output:
	// hello, web
	// again after 0s <nil>
	// Ready True Succeeded ""
}

// If several steps have not succeeded, the message of Ready names each by the condition that it reports, or by its
// name if it reports none.
func ExampleNamed() {
	run(
		reconcile.Named("database", step(reconcile.Wait("Starting", 0, "the database is starting"))),
		reconcile.Named("workload", step(reconcile.Wait("PodsNotReady", 0, "1 of 2 pods is ready"))).Reporting("Available"),
	)
	// Output:
	// again after 0s <nil>
	// Available False PodsNotReady "1 of 2 pods is ready"
	// Ready False Starting "database: the database is starting; Available: 1 of 2 pods is ready"
	// Reconciling True Starting "database: the database is starting; Available: 1 of 2 pods is ready"
}

// The outcome of the step becomes a condition, for which kubectl wait can wait.
func ExampleNamedStep_Reporting() {
	run(reconcile.Named("workload", step(nil)).Reporting("Available"))
	// Output:
	// again after 0s <nil>
	// Available True Succeeded ""
	// Ready True Succeeded ""
}

// The step checks the account only if a person requests a pass.
func ExampleRequested() {
	ctx := context.Background()
	c, request := store(map[string]string{reconcile.RequestedAnnotation: "now"})
	r := reconcile.New(c, reconcile.Named("account", reconcile.Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		if !reconcile.Requested(ctx) {
			fmt.Println("nothing to do")
			return nil
		}
		fmt.Println("looks at the account")
		return nil
	})))
	for range 2 {
		_, err := r.Reconcile(ctx, request)
		fmt.Println(err)
	}
	// Output:
	// looks at the account
	// <nil>
	// nothing to do
	// <nil>
}

// A new release renames the step "data" to "storage". If an object has the finalizer of the former name, the pass
// replaces it.
func ExampleNamedStep_FormerNames() {
	ctx := context.Background()
	children := ownedresources.Ensure(ownedresources.Build(func(b *budget) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: b.Name}}
	}).Anywhere())
	c, request := store(nil)
	b := &budget{}
	if err := c.Get(ctx, request.NamespacedName, b); err != nil {
		fmt.Println(err)
	}
	b.Finalizers = []string{"children.opblocks.dev/data"}
	fmt.Println(c.Update(ctx, b))

	_, err := reconcile.New(c, reconcile.Named("storage", children).FormerNames("data")).Reconcile(ctx, request)
	fmt.Println(err, c.Get(ctx, request.NamespacedName, b), b.Finalizers)
	// Output:
	// <nil>
	// <nil> <nil> [children.opblocks.dev/storage]
}

// If the cleanup has failed for an hour, the finalizer is removed, and a warning event says what may be left.
func ExampleNamedStep_GiveUpCleanupAfter() {
	ctx := context.Background()
	c, request := store(nil)
	r := reconcile.New(c, reconcile.Named("account", unreachable{}).
		Finalizer("example.com/account").GiveUpCleanupAfter(time.Hour)).WithClock(tomorrow{})
	_, err := r.Reconcile(ctx, request)
	fmt.Println(err)

	_ = c.Delete(ctx, &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	_, err = r.Reconcile(ctx, request)
	fmt.Println(err)
	fmt.Println(c.Get(ctx, request.NamespacedName, &budget{}))
	// Output:
	// <nil>
	// <nil>
	// poddisruptionbudgets.policy "web" not found
}

// unreachable is a step whose service outside of the cluster does not answer when the step deletes the account.
type unreachable struct{}

func (unreachable) Reconcile(context.Context, client.Client, *budget) error { return nil }

func (unreachable) Finalize(context.Context, client.Client, *budget) error {
	return fmt.Errorf("delete the account: %w", context.DeadlineExceeded)
}

// tomorrow is a clock that is one day ahead.
type tomorrow struct{}

func (tomorrow) Now() time.Time                     { return time.Now().Add(24 * time.Hour) }
func (t tomorrow) Since(ts time.Time) time.Duration { return t.Now().Sub(ts) }

// The cache of the manager has the objects of two namespaces, in compact form.
func ExampleCacheOptions() {
	options := ctrl.Options{Cache: reconcile.CacheOptions("shop", "stock")}
	fmt.Println(len(options.Cache.DefaultNamespaces), options.Cache.DefaultTransform != nil)
	// Output: 2 true
}

// The managed fields are removed before the object is stored in the cache.
func ExampleTransformCompact() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}}
	_, err := reconcile.TransformCompact()(pod)
	fmt.Println(len(pod.ManagedFields), err)
	// Output: 0 <nil>
}
