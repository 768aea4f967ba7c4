package ownedresources_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

func ExampleApply() {
	ctx, c := context.Background(), fake.NewFakeClient()
	shop := webShop(ShopSpec{Content: "sale"})
	for range 2 {
		settings := ownedresources.NewConfigMap(shop, map[string]string{"content": shop.Spec.Content})
		results, err := ownedresources.Apply(ctx, c, shop, settings)
		fmt.Println(results[0].Operation, err)
	}
	// Output:
	// created <nil>
	// unchanged <nil>
}

// An object that somebody else created is not changed.
func ExampleApply_notOurs() {
	shop := webShop(ShopSpec{})
	c := fake.NewFakeClient(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}})

	_, err := ownedresources.Apply(context.Background(), c, shop, ownedresources.NewService(shop, nil))
	var notOurs *ownedresources.OwnershipError
	fmt.Println(errors.As(err, &notOurs), err)
	// Output:
	// true Service default/web exists and is not controlled by anything: it is left alone; choose another name, or let the operator take it over with Adopt
}

func ExampleEnsure() {
	children := ownedresources.Ensure(
		ownedresources.Build(func(shop *Shop) *corev1.Service {
			return ownedresources.NewService(shop, nil, corev1.ServicePort{Name: "http", Port: 80})
		}),
		ownedresources.Build(func(shop *Shop) *appsv1.Deployment {
			return ownedresources.NewDeployment(shop, nil, corev1.Container{Name: "web", Image: "nginx:" + shop.Spec.Version})
		}),
	)
	err := children.Reconcile(context.Background(), fake.NewFakeClient(), webShop(ShopSpec{Version: "1.27"}))
	var waiting *ownedresources.WaitingError
	fmt.Println(errors.As(err, &waiting), err) // no controller has created a pod yet
	// Output:
	// true Deployment default/web: Replicas: 0/1
}

func ExampleSetHash() {
	d := &appsv1.Deployment{}
	for _, settings := range []map[string]int{{"cpu": 1, "memory": 2}, {"memory": 2, "cpu": 1}} { // the order of a map's keys does not matter
		changed, err := ownedresources.SetHash(&d.Spec.Template, "example.com/settings", settings)
		fmt.Println(changed, err, d.Spec.Template.Annotations)
	}
	// Output:
	// true <nil> map[example.com/settings:v1:528db8a4cbe1c4726f4a54e82d0b5f82]
	// false <nil> map[example.com/settings:v1:528db8a4cbe1c4726f4a54e82d0b5f82]
}

func ExampleBuild() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(), webShop(ShopSpec{})
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.Service {
		return ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80})
	}))
	fmt.Println(children.Reconcile(ctx, c, shop))
	service := get(c, "web", &corev1.Service{})
	fmt.Println(service.Spec.Ports[0].Port, metav1.IsControlledBy(service, shop))
	// Output:
	// <nil>
	// 80 true
}

func ExampleBuildOrError() {
	child := ownedresources.BuildOrError(func(shop *Shop) (*corev1.ConfigMap, error) {
		if !json.Valid([]byte(shop.Spec.Content)) {
			return nil, errors.New(".spec.content is not JSON")
		}
		return ownedresources.NewConfigMap(shop, map[string]string{"content.json": shop.Spec.Content}), nil
	})
	shop := webShop(ShopSpec{Content: "<html>"})
	fmt.Println(ownedresources.Ensure(child).Reconcile(context.Background(), fake.NewFakeClient(), shop))
	// Output:
	// .spec.content is not JSON
}

// A child is deleted if its function returns nil.
func ExampleBuild_notWanted() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(), webShop(ShopSpec{})
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.Service {
		if !shop.Spec.Monitored {
			return nil
		}
		return ownedresources.NewService(shop, nil, corev1.ServicePort{Name: "metrics", Port: 9090})
	}))
	for _, monitored := range []bool{true, false} {
		shop.Spec.Monitored = monitored
		must(children.Reconcile(ctx, c, shop))
		var services corev1.ServiceList
		must(c.List(ctx, &services))
		fmt.Println("monitored:", monitored, "services:", len(services.Items))
	}
	// Output:
	// monitored: true services: 1
	// monitored: false services: 0
}

func ExampleChild_Kind() {
	child := ownedresources.BuildOrError(func(shop *Shop) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetName(shop.Name + "-settings")
		return u, unstructured.SetNestedField(u.Object, shop.Spec.Content, "data", "content")
	}).Kind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	c := fake.NewFakeClient()
	fmt.Println(ownedresources.Ensure(child).Reconcile(context.Background(), c, webShop(ShopSpec{Content: "sale"})))
	fmt.Println(get(c, "web-settings", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[content:sale]
}

func ExampleSetHash_secret() {
	settings := &corev1.ConfigMap{Data: map[string]string{"level": "debug"}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", UID: "2", ResourceVersion: "8"}}
	d := ownedresources.NewDeployment(webShop(ShopSpec{}), nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
	roll := func() {
		fmt.Println(ownedresources.SetHash(&d.Spec.Template, "example.com/uses", settings.Data, password))
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
	ctx, c, shop := context.Background(), fake.NewFakeClient(), webShop(ShopSpec{})
	settings := func(content string) *corev1.ConfigMap {
		return ownedresources.NewConfigMap(shop, map[string]string{"content": content})
	}
	_, err := ownedresources.Apply(ctx, c, shop, settings("news"))
	must(err)
	changes, err := ownedresources.Diff(ctx, c, shop, settings("sale"))
	fmt.Println(err, changes[0].Action, changes[0].Differences)
	// Output:
	// <nil> apply [data[content]: "news" → "sale"]
}

// A Job that has failed does not become ready, however long one waits.
func ExampleFailedError() {
	ctx, shop := context.Background(), webShop(ShopSpec{Version: "1.4"})
	c := fake.NewClientBuilder().WithStatusSubresource(&batchv1.Job{}).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *batchv1.Job {
		j := ownedresources.NewJob(shop, corev1.Container{Name: "migrate", Image: "web:" + shop.Spec.Version, Args: []string{"migrate"}})
		j.Name += "-migrate-" + shop.Spec.Version
		return j
	}))
	fmt.Println(children.Reconcile(ctx, c, shop))

	job := get(c, "web-migrate-1.4", &batchv1.Job{})
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	must(c.Status().Update(ctx, job))
	err := children.Reconcile(ctx, c, shop)
	var failed *ownedresources.FailedError
	fmt.Println(errors.As(err, &failed), err)
	// Output:
	// Job default/web-migrate-1.4: Job not started
	// true Job default/web-migrate-1.4: Job Failed. failed: 0/1
}
