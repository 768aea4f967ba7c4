package ownedresources_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	// Service shop/web exists and is not controlled by anything: it is left alone; delete it, choose another name, or allow to Adopt it
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

func ExampleBuildOrError() {
	child := ownedresources.BuildOrError(func(cm *corev1.ConfigMap) (*corev1.Service, error) {
		if len(cm.Name) < 8 {
			return nil, fmt.Errorf("name %q: too short for a Service of ours", cm.Name)
		}
		return ownedresources.NewService(cm, nil), nil
	})
	fmt.Println(ownedresources.Ensure(child).Reconcile(context.Background(), fake.NewFakeClient(), owner))
	// Output:
	// name "web": too short for a Service of ours
}

func ExampleBuild_notWanted() {
	ctx, c := context.Background(), fake.NewFakeClient()
	exposed := true
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
		if !exposed {
			return nil // what was made before is deleted
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

func ExampleBuildUnstructured() {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	child := ownedresources.BuildUnstructured(kind, func(cm *corev1.ConfigMap) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetName(cm.Name + "-settings")
		return u, unstructured.SetNestedField(u.Object, "sale", "data", "mode")
	})
	ctx, c := context.Background(), fake.NewFakeClient()
	fmt.Println(ownedresources.Ensure(child).Reconcile(ctx, c, owner))
	var settings corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &settings), settings.Data)
	// Output:
	// <nil>
	// <nil> map[mode:sale]
}

func ExampleCreateOnly() {
	ctx, c := context.Background(), fake.NewFakeClient()
	size := int32(2)
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *appsv1.Deployment {
		d := ownedresources.NewDeployment(cm, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
		d.Spec.Replicas = new(size)
		return d
	}, ownedresources.CreateOnly(func(d *appsv1.Deployment) { d.Spec.Replicas = nil })))
	for _, size = range []int32{2, 3} {
		err := children.Reconcile(ctx, c, owner)
		var d appsv1.Deployment
		fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(owner), &d), *d.Spec.Replicas, err != nil) // it is not ready
	}
	// Output:
	// <nil> 2 true
	// <nil> 2 true
}

func ExampleAdopt() {
	ctx := context.Background()
	nobodys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-settings"}}
	c := fake.NewClientBuilder().WithObjects(nobodys).Build()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-settings"}, Data: map[string]string{"mode": "sale"}}
	}, ownedresources.Adopt()))
	fmt.Println(children.Reconcile(ctx, c, owner))
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(nobodys), nobodys), metav1.IsControlledBy(nobodys, owner), nobodys.Data)
	// Output:
	// <nil>
	// <nil> true map[mode:sale]
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
	password.ResourceVersion = "9" // somebody changed it
	roll()
	// Output:
	// true <nil>
	// false <nil>
	// true <nil>
}

func ExampleContainerPorts() {
	for _, p := range ownedresources.ContainerPorts(
		corev1.ServicePort{Port: 8080, TargetPort: intstr.FromInt32(80)},
		corev1.ServicePort{Port: 9090, TargetPort: intstr.FromString("metrics")},
		corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP},
	) {
		fmt.Printf("%d %q %q\n", p.ContainerPort, p.Name, p.Protocol)
	}
	// Output:
	// 80 "" ""
	// 9090 "metrics" ""
	// 53 "" "UDP"
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
