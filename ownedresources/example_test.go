package ownedresources_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// A ConfigMap plays the custom resource here: whatever has a UID may own.
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

func ExampleApply_notOurs() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}).Build()

	_, err := ownedresources.Apply(ctx, c, owner, ownedresources.NewService(owner, nil))
	fmt.Println(err)
	// Output:
	// Service shop/web exists and is not controlled by anything: it is left alone; delete it or choose another name
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
	fmt.Println(children.Reconcile(ctx, c, owner))
	// Output:
	// Deployment shop/web: Replicas: 0/1
}

func ExampleNewDeployment() {
	d := ownedresources.NewDeployment(owner, map[string]string{"app": "web"}, corev1.Container{Name: "web", Image: "nginx:1.27"})
	d.Spec.Replicas = new(int32(2))

	pod := d.Spec.Template
	fmt.Println(d.Namespace, d.Name, d.Labels)
	fmt.Println(pod.Labels, *pod.Spec.SecurityContext.RunAsNonRoot, *pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation)
	// Output:
	// shop web map[app.kubernetes.io/instance:web app.kubernetes.io/managed-by:configmap-operator app.kubernetes.io/name:configmap]
	// map[app:web] true false
}

func ExampleNewService() {
	s := ownedresources.NewService(owner, map[string]string{"app": "web"}, corev1.ServicePort{Name: "http", Port: 80})
	s.Spec.ClusterIP = corev1.ClusterIPNone // headless
	fmt.Println(s.Name, s.Spec.Selector, s.Spec.Ports[0].Port)
	// Output:
	// web map[app:web] 80
}

func ExampleHash() {
	a, _ := ownedresources.Hash(map[string]int{"cpu": 1, "memory": 2})
	b, _ := ownedresources.Hash(map[string]int{"memory": 2, "cpu": 1})
	fmt.Println(a == b, a)
	// Output:
	// true v1:528db8a4cbe1c4726f4a54e82d0b5f82
}

func ExampleSetHash() {
	d := &appsv1.Deployment{}
	settings := map[string]string{"mode": "sale"}
	for range 2 {
		changed, err := ownedresources.SetHash(d, "example.com/settings", settings)
		fmt.Println(changed, err)
	}
	settings["mode"] = "normal"
	fmt.Println(ownedresources.HashChanged(d, "example.com/settings", settings))
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleLabelValue() {
	fmt.Println(ownedresources.LabelValue("web"))
	fmt.Println(ownedresources.LabelValue("a-name-that-a-custom-resource-may-well-have-but-that-no-label-may"))
	// Output:
	// web
	// a-name-that-a-custom-resource-may-well-have-but-that-510b5194b0
}
