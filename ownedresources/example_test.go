package ownedresources_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// owner is a ConfigMap in place of a custom resource: every object that has a UID can own others.
var owner = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"}}

func ExampleApply() {
	ctx, c := context.Background(), fake.NewFakeClient()
	settings := func() client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web-settings"}, // in the owner's namespace
			Data:       map[string][]byte{"mode": []byte("sale")},
		}
	}
	for range 2 {
		results, err := ownedresources.Apply(ctx, c, owner, settings())
		fmt.Println(results[0].Operation, err)
	}
	// Output:
	// created <nil>
	// unchanged <nil>
}

// An object that somebody else created is left alone.
func ExampleApply_notOurs() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}).Build()

	_, err := ownedresources.Apply(ctx, c, owner, ownedresources.NewService(owner, nil))
	var notOurs *ownedresources.OwnershipError
	fmt.Println(errors.As(err, &notOurs), err)
	// Output:
	// true Service shop/web exists and is not controlled by anything: it is left alone; delete it, choose another name, or allow to Adopt it
}

func ExampleEnsure() {
	ctx, c := context.Background(), fake.NewFakeClient()
	children := ownedresources.Ensure(
		ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
			return ownedresources.NewService(cm, nil, corev1.ServicePort{Name: "http", Port: 80})
		}),
		ownedresources.Build(func(cm *corev1.ConfigMap) *appsv1.Deployment {
			return ownedresources.NewDeployment(cm, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
		}),
	)
	err := children.Reconcile(ctx, c, owner)
	var waiting *ownedresources.WaitingError
	fmt.Println(errors.As(err, &waiting), err) // no controller has created a pod yet
	// Output:
	// true Deployment shop/web: Replicas: 0/1
}

func ExampleSetHash() {
	d := &appsv1.Deployment{}
	for _, settings := range []map[string]int{{"cpu": 1, "memory": 2}, {"memory": 2, "cpu": 1}} { // the order of the keys does not count
		changed, err := ownedresources.SetHash(&d.Spec.Template, "example.com/settings", settings)
		fmt.Println(changed, err, d.Spec.Template.Annotations)
	}
	// Output:
	// true <nil> map[example.com/settings:v1:528db8a4cbe1c4726f4a54e82d0b5f82]
	// false <nil> map[example.com/settings:v1:528db8a4cbe1c4726f4a54e82d0b5f82]
}

func ExampleHashChanged() {
	d := &appsv1.Deployment{}
	settings := map[string]string{"mode": "sale"}
	fmt.Println(ownedresources.SetHash(d, "example.com/settings", settings))
	fmt.Println(ownedresources.HashChanged(d, "example.com/settings", settings))
	settings["mode"] = "normal"
	fmt.Println(ownedresources.HashChanged(d, "example.com/settings", settings))
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleBuild() {
	ctx, c := context.Background(), fake.NewFakeClient()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
		return ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
	}))
	fmt.Println(children.Reconcile(ctx, c, owner))
	var service corev1.Service
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(owner), &service), metav1.IsControlledBy(&service, owner))
	// Output:
	// <nil>
	// <nil> true
}

func ExampleBuildOrError() {
	child := ownedresources.BuildOrError(func(cm *corev1.ConfigMap) (*corev1.Service, error) {
		if len(cm.Name) < 8 {
			return nil, fmt.Errorf("the name %q is too short for a Service", cm.Name)
		}
		return ownedresources.NewService(cm, nil), nil
	})
	fmt.Println(ownedresources.Ensure(child).Reconcile(context.Background(), fake.NewFakeClient(), owner))
	// Output:
	// the name "web" is too short for a Service
}

// A child whose function returns nil is deleted.
func ExampleBuild_notWanted() {
	ctx, c := context.Background(), fake.NewFakeClient()
	exposed := true
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
		if !exposed {
			return nil
		}
		return ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
	}))
	for _, exposed = range []bool{true, false} {
		if err := children.Reconcile(ctx, c, owner); err != nil {
			fmt.Println(err)
		}
		var services corev1.ServiceList
		fmt.Println(c.List(ctx, &services), len(services.Items))
	}
	// Output:
	// <nil> 1
	// <nil> 0
}

func ExampleChild_Kind() {
	child := ownedresources.BuildOrError(func(cm *corev1.ConfigMap) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetName(cm.Name + "-settings")
		return u, unstructured.SetNestedField(u.Object, "sale", "data", "mode")
	}).Kind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	ctx, c := context.Background(), fake.NewFakeClient()
	fmt.Println(ownedresources.Ensure(child).Reconcile(ctx, c, owner))
	var settings corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &settings), settings.Data)
	// Output:
	// <nil>
	// <nil> map[mode:sale]
}

func ExampleVersions() {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", UID: "1", ResourceVersion: "7"}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", UID: "2", ResourceVersion: "8"}}
	d := ownedresources.NewDeployment(owner, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
	roll := func() {
		fmt.Println(ownedresources.SetHash(&d.Spec.Template, "example.com/uses", ownedresources.Versions(settings, password)))
	}
	roll()
	roll()
	password.ResourceVersion = "9" // somebody has changed the password
	roll()
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleDiff() {
	ctx, c := context.Background(), fake.NewFakeClient()
	settings := func(mode string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-settings"}, Data: map[string]string{"mode": mode}}
	}
	if _, err := ownedresources.Apply(ctx, c, owner, settings("normal")); err != nil {
		fmt.Println(err)
	}
	changes, err := ownedresources.Diff(ctx, c, owner, settings("sale"))
	fmt.Println(err, changes[0].Operation, changes[0].Differences)
	// Output:
	// <nil> applied [data[mode]: "normal" → "sale"]
}

// A Job that has failed does not become ready by waiting.
func ExampleFailedError() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithStatusSubresource(&batchv1.Job{}).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-migrate"}}
	}))
	fmt.Println(children.Reconcile(ctx, c, owner))

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-migrate"}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		fmt.Println(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	if err := c.Status().Update(ctx, job); err != nil {
		fmt.Println(err)
	}
	err := children.Reconcile(ctx, c, owner)
	var failed *ownedresources.FailedError
	fmt.Println(errors.As(err, &failed), err)
	// Output:
	// Job shop/web-migrate: Job not started
	// true Job shop/web-migrate: Job Failed. failed: 0/1
}
