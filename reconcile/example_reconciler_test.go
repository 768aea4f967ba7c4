package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
)

// Your own builder watches the kind. The reconciler adds the watches of its steps.
func ExampleReconciler_SetupWithBuilder() {
	setup := func(mgr ctrl.Manager) error {
		r := reconcile.New(mgr.GetClient(), reconcile.Named("all", step(nil)))
		b := ctrl.NewControllerManagedBy(mgr).For(&budget{}).WithOptions(controller.Options{MaxConcurrentReconciles: 4})
		if err := r.SetupWithBuilder(mgr, b); err != nil {
			return err
		}
		return b.Complete(r)
	}
	fmt.Printf("%T\n", setup)
	// Output: func(manager.Manager) error
}

// Several operators share a kind, and a label says which operator an object belongs to. The filter also applies to
// passes that other watches trigger.
func ExampleReconciler_WithFilter() {
	ctx := context.Background()
	c, request := store(nil)
	r := reconcile.New(c, reconcile.Named("greet", reconcile.Func(func(_ context.Context, _ client.Client, b *budget) error {
		fmt.Println("hello,", b.Name)
		return nil
	}))).WithFilter(func(b *budget) bool { return b.Labels["target"] == "shop" })

	b := &budget{}
	for range 2 {
		_, err := r.Reconcile(ctx, request)
		fmt.Println(err)
		if err := c.Get(ctx, request.NamespacedName, b); err != nil {
			fmt.Println(err)
		}
		b.Labels = map[string]string{"target": "shop"}
		if err := c.Update(ctx, b); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// <nil>
	// hello, web
	// <nil>
}

// A Deployment has its own controller, which writes the status. So the reconciler does not write it.
func ExampleReconciler_WithoutStatus() {
	ctx := context.Background()
	c, request := store(nil)
	_, err := reconcile.New(c, reconcile.Named("all", step(nil))).WithoutStatus().Reconcile(ctx, request)
	b := &budget{}
	fmt.Println(err, c.Get(ctx, request.NamespacedName, b))
	fmt.Println(len(b.Status.Conditions), "conditions")
	// Output:
	// <nil> <nil>
	// 0 conditions
}

// The conditions are a history. The reconciler appends failures, and the steps append everything else.
func ExampleReconciler_WithHistory() {
	ctx := context.Background()
	c, request := store(nil)
	r := reconcile.New(c, reconcile.Named("backup", step(reconcile.WithReason("NoSpace", errors.New("the disk is full"))))).
		WithHistory(func(b *budget) conditions.List { return conditions.History(&b.Status.Conditions, 10) })
	for range 2 {
		if _, err := r.Reconcile(ctx, request); err != nil {
			fmt.Println(err)
		}
	}
	b := &budget{}
	if err := c.Get(ctx, request.NamespacedName, b); err != nil {
		fmt.Println(err)
	}
	for _, entry := range b.Status.Conditions {
		fmt.Println(entry.Type, entry.Status, entry.Reason, entry.Message)
	}
	// Output: Backup False NoSpace the disk is full
}
