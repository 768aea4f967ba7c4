package finalizers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/finalizers"
)

// reconciler creates an account outside of the cluster for every ConfigMap. A ConfigMap stands for a custom resource
// here.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	user := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, user); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleted, err := finalizers.Finalize(ctx, r, user, finalizers.Finalizer{Name: "example.com/account", Cleanup: func(context.Context) error {
		fmt.Println("drop the account of", user.Name)
		return nil
	}})
	if err != nil || deleted {
		return ctrl.Result{}, err
	}
	if _, err := finalizers.Ensure(ctx, r, user, "example.com/account"); err != nil {
		return ctrl.Result{}, err
	}
	fmt.Println("create the account of", user.Name)
	return ctrl.Result{}, nil
}

func Example() {
	ctx := context.Background()
	user := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ann"}}
	r := &reconciler{fake.NewClientBuilder().WithObjects(user).Build()}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(user)}

	_, err := r.Reconcile(ctx, request)
	fmt.Println(err)
	fmt.Println(r.Delete(ctx, user))
	_, err = r.Reconcile(ctx, request)
	fmt.Println(err)
	fmt.Println(r.Get(ctx, request.NamespacedName, user))
	// Output:
	// create the account of ann
	// <nil>
	// <nil>
	// drop the account of ann
	// <nil>
	// configmaps "ann" not found
}

// newUser returns a client and an object with these finalizers. If there are any, the deletion of the object started an hour
// ago.
func newUser(names ...string) (client.Client, *corev1.ConfigMap) {
	user := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ann", Finalizers: names}}
	if len(names) > 0 {
		user.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	}
	c := fake.NewClientBuilder().WithObjects(user).Build()
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(user), user); err != nil {
		fmt.Println(err)
	}
	return c, user
}

func ExampleEnsure() {
	c, user := newUser()
	for range 2 {
		added, err := finalizers.Ensure(context.Background(), c, user, "example.com/account")
		fmt.Println(added, err, user.Finalizers)
	}
	// Output:
	// true <nil> [example.com/account]
	// false <nil> [example.com/account]
}

func ExampleEnsure_beingDeleted() {
	c, user := newUser("others.example.com/backup")
	_, err := finalizers.Ensure(context.Background(), c, user, "example.com/account")
	fmt.Println(errors.Is(err, finalizers.ErrBeingDeleted))
	fmt.Println(err)
	// Output:
	// true
	// add finalizer "example.com/account" to ConfigMap shop/ann: the object is being deleted, which allows no new finalizers
}

func ExampleFinalize() {
	c, user := newUser("example.com/account", "others.example.com/backup")
	deleted, err := finalizers.Finalize(context.Background(), c, user, finalizers.Finalizer{Name: "example.com/account", Cleanup: func(context.Context) error {
		return nil // the account is gone
	}})
	fmt.Println(deleted, err, user.Finalizers)
	// Output: true <nil> [others.example.com/backup]
}

// A person can end a cleanup that fails with an annotation: the cleanup then returns nil.
func ExampleFinalize_giveUpByAnnotation() {
	c, user := newUser("example.com/account", "others.example.com/backup")
	user.Annotations = map[string]string{"example.com/abandon": "true"}
	deleted, err := finalizers.Finalize(context.Background(), c, user, finalizers.Finalizer{Name: "example.com/account", Cleanup: func(context.Context) error {
		if user.Annotations["example.com/abandon"] == "true" {
			return nil // and also send an event
		}
		return errors.New("the database does not answer")
	}})
	fmt.Println(deleted, err, user.Finalizers)
	// Output: true <nil> [others.example.com/backup]
}

func ExampleFinalizer() {
	c, user := newUser("example.com/account", "others.example.com/backup")
	cleanup := func(context.Context) error { return errors.New("the database does not answer") }
	for _, limit := range []time.Duration{24 * time.Hour, time.Minute} {
		// In an operator the recorder is mgr.GetEventRecorder("…").
		deleted, err := finalizers.Finalize(context.Background(), c, user, finalizers.Finalizer{
			Name: "example.com/account", Cleanup: cleanup,
			GiveUpAfter: limit,
		})
		fmt.Println(deleted, err, len(user.Finalizers))
	}
	// Output:
	// true the database does not answer 2
	// true <nil> 1
}

// A new release of an operator renames its finalizer.
func ExampleReplace() {
	c, user := newUser()
	user.Finalizers = []string{"example.com/former-name"}
	fmt.Println(c.Update(context.Background(), user))
	added, err := finalizers.Replace(context.Background(), c, user, []string{"example.com/former-name"}, "example.com/account")
	fmt.Println(added, err, user.Finalizers)
	// Output:
	// <nil>
	// true <nil> [example.com/account]
}

func ExampleRemove() {
	c, user := newUser("example.com/former-name", "example.com/account")
	for range 2 {
		removed, err := finalizers.Remove(context.Background(), c, user, "example.com/former-name")
		fmt.Println(removed, err, user.Finalizers)
	}
	// Output:
	// true <nil> [example.com/account]
	// false <nil> [example.com/account]
}

func ExampleFinalize_ordered() {
	c, user := newUser("example.com/database", "example.com/account", "others.example.com/backup")
	cleanup := func(what string) func(context.Context) error {
		return func(context.Context) error { fmt.Println(what); return nil }
	}
	list := []finalizers.Finalizer{
		{Name: "example.com/database", Cleanup: cleanup("drop the database")},
		{Name: "example.com/account", Cleanup: cleanup("drop the account that uses it")},
	}
	deleted, err := finalizers.Finalize(context.Background(), c, user, list...)
	fmt.Println(deleted, err, user.Finalizers)
	// Output:
	// drop the account that uses it
	// drop the database
	// true <nil> [others.example.com/backup]
}

// A test replaces the clock with which GiveUpAfter is measured.
func ExampleFinalizer_clock() {
	ctx := context.Background()
	deleted := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	user := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "ann", Finalizers: []string{"example.com/account"}, DeletionTimestamp: &deleted,
	}}
	c := fake.NewClientBuilder().WithObjects(user).Build()
	if err := c.Get(ctx, client.ObjectKeyFromObject(user), user); err != nil {
		fmt.Println(err)
	}
	unreachable := func(context.Context) error { return errors.New("the directory does not answer") }
	for _, hours := range []time.Duration{1, 25} {
		now := deleted.Add(hours * time.Hour)
		deleted, err := finalizers.Finalize(ctx, c, user, finalizers.Finalizer{
			Name: "example.com/account", Cleanup: unreachable,
			GiveUpAfter: 24 * time.Hour, Now: func() time.Time { return now },
		})
		fmt.Println(deleted, err)
	}
	// Output:
	// true the directory does not answer
	// true <nil>
}
