package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile"
)

func ExamplePatchLabels() {
	ctx := context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"team": "blue"}}}
	c := fake.NewClientBuilder().WithObjects(pod).Build()
	for range 2 {
		fmt.Println(reconcile.PatchLabels(ctx, c, pod, map[string]string{"role": "primary"}))
	}
	fmt.Println(pod.Labels)
	// Output:
	// true <nil>
	// false <nil>
	// map[role:primary team:blue]
}

// The ConfigMap owns the Secret, but is not its controller. The garbage collector deletes the Secret together with
// the ConfigMap.
func ExamplePatchOwnerReference() {
	ctx := context.Background()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password"}}
	c := fake.NewClientBuilder().WithObjects(owner, secret).Build()
	if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		fmt.Println(err)
	}
	fmt.Println(reconcile.PatchOwnerReference(ctx, c, secret, owner))
	fmt.Println(secret.OwnerReferences[0].Kind, secret.OwnerReferences[0].Name)

	owner.UID = "77aa" // as if it was deleted and created again
	_, err := reconcile.PatchOwnerReference(ctx, c, secret, owner)
	fmt.Println(errors.Is(err, reconcile.ErrOwnerRecreated))
	// Output:
	// true <nil>
	// ConfigMap web
	// true
}

// If the operator creates an object once, it can set the owner in the creation.
func ExampleOwnerReference() {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"}}
	reference, err := reconcile.OwnerReference(fake.NewFakeClient(), owner)
	fmt.Println(reference.APIVersion, reference.Kind, reference.Name, reference.UID, *reference.Controller, err)
	// Output: v1 ConfigMap web 6d1f false <nil>
}

// If the versions are equal, the object is the same and unchanged, so its content need not be read.
func ExampleVersionOf() {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", UID: "77aa", ResourceVersion: "12"}}
	fmt.Println(reconcile.VersionOf(secret))
	// Output: 77aa/12
}

// An event reports what a step has done, and not the current state.
func ExampleEventf() {
	c, request := store(nil)
	recorder := events.NewFakeRecorder(10)
	r := reconcile.New(c, reconcile.Named("backup", reconcile.Func(func(ctx context.Context, _ client.Client, b *budget) error {
		reconcile.Eventf(ctx, b, corev1.EventTypeNormal, "BackupDone", "Copied %d objects", 7)
		return nil
	}))).WithRecorder(recorder)
	_, err := r.Reconcile(context.Background(), request)
	fmt.Println(err)
	fmt.Println(<-recorder.Events)
	// Output:
	// <nil>
	// Normal BackupDone Copied 7 objects
}
