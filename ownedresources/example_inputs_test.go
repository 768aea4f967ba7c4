package ownedresources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// themeName returns the name of the ConfigMap that contains the theme of a shop.
func themeName(*Shop) []types.NamespacedName {
	return []types.NamespacedName{{Name: "theme"}} // in the owner's namespace
}

// readColor returns the color of the theme. It may read only the ConfigMap whose name themeName returns.
func readColor(ctx context.Context, r client.Reader, shop *Shop) (string, error) {
	var theme corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: shop.Namespace, Name: "theme"}, &theme)
	return theme.Data["color"], err
}

func theme(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme", UID: "7a01"}, Data: map[string]string{"color": color},
	}
}

// With a manager, a change of the ConfigMap triggers a reconcile.
func ExampleBuildFrom() {
	color := ownedresources.From(func(ctx context.Context, r client.Reader, shop *Shop) (string, error) {
		var theme corev1.ConfigMap
		err := r.Get(ctx, client.ObjectKey{Namespace: shop.Namespace, Name: "theme"}, &theme)
		return theme.Data["color"], err
	}, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(color, func(shop *Shop, color string) (*corev1.Secret, error) {
		style := ownedresources.NewSecret(shop, map[string][]byte{"style.css": []byte("body { background: " + color + " }")})
		style.Name += "-style"
		return style, nil
	}))
	c := fake.NewFakeClient(theme("green"))
	fmt.Println(children.Reconcile(context.Background(), c, webShop(ShopSpec{})))
	fmt.Println(string(get(c, "web-style", &corev1.Secret{}).Data["style.css"]))
	// Output:
	// <nil>
	// body { background: green }
}

// While an object that the input reads is missing, the child that is built from the input is neither created nor changed.
func ExampleFrom() {
	color := ownedresources.From(readColor, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(color, func(shop *Shop, color string) (*corev1.Secret, error) {
		return ownedresources.NewSecret(shop, map[string][]byte{"color": []byte(color)}), nil
	}))
	err := children.Reconcile(context.Background(), fake.NewFakeClient(), webShop(ShopSpec{}))
	if waiting, ok := errors.AsType[*ownedresources.WaitingError](err); ok {
		reason, _ := waiting.Waiting()
		fmt.Println(reason)
	}
	fmt.Println(err)
	// Output:
	// ReferenceNotFound
	// child Secret: configmaps "theme" not found
}

const usesTheme = "example.com/theme"

// The pods are replaced when the theme changes. They are not replaced when the theme is deleted.
func ExampleVersionHash() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(theme("green")), webShop(ShopSpec{Version: "1.27"})
	version := ownedresources.VersionHash(ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(version, func(shop *Shop, hash string) (*appsv1.Deployment, error) {
		d := ownedresources.NewDeployment(shop, nil, corev1.Container{Name: "web", Image: "nginx:" + shop.Spec.Version})
		d.Spec.Template.Annotations = map[string]string{usesTheme: hash}
		return d, nil
	}).KeepAnnotationsWhileMissing(usesTheme))
	var before string
	reconcile := func(what string) {
		err := children.Reconcile(ctx, c, shop)
		hash := get(c, "web", &appsv1.Deployment{}).Spec.Template.Annotations[usesTheme]
		fmt.Println(what, "- new pods:", hash != before, "-", err)
		before = hash
	}
	reconcile("created")
	must(c.Update(ctx, theme("blue")))
	reconcile("theme changed")
	must(c.Delete(ctx, theme("blue")))
	reconcile("theme deleted")
	// Output:
	// created - new pods: true - Deployment default/web: Replicas: 0/1
	// theme changed - new pods: true - Deployment default/web: Replicas: 0/1
	// theme deleted - new pods: false - child Deployment: ConfigMap theme: not found; Deployment default/web: Replicas: 0/1
}

// The pods are replaced when the content of the theme changes, and not when only its labels change. The hash is keyed, so it reveals
// nothing about the content.
func ExampleContentHash() {
	ctx, c, shop := context.Background(), fake.NewFakeClient(theme("green")), webShop(ShopSpec{Version: "1.27"})
	key := ownedresources.Build(func(shop *Shop) *corev1.Secret {
		s := ownedresources.NewSecret(shop, nil)
		s.Name += "-hash-key"
		return s
	}).Generate("key", 32)
	content := ownedresources.ContentHash(key, "key", ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(key, ownedresources.BuildFrom(content, func(shop *Shop, hash string) (*appsv1.Deployment, error) {
		d := ownedresources.NewDeployment(shop, nil, corev1.Container{Name: "web", Image: "nginx:" + shop.Spec.Version})
		d.Spec.Template.Annotations = map[string]string{usesTheme: hash}
		return d, nil
	}))
	var before string
	reconcile := func(what string) {
		err := children.Reconcile(ctx, c, shop)
		hash := get(c, "web", &appsv1.Deployment{}).Spec.Template.Annotations[usesTheme]
		fmt.Println(what, "- new pods:", hash != before, "-", err)
		before = hash
	}
	reconcile("created")
	labelled := theme("green")
	labelled.Labels = map[string]string{"season": "winter"}
	must(c.Update(ctx, labelled))
	reconcile("theme labelled")
	must(c.Update(ctx, theme("blue")))
	reconcile("theme changed")
	// Output:
	// created - new pods: true - Deployment default/web: Replicas: 0/1
	// theme labelled - new pods: false - Deployment default/web: Replicas: 0/1
	// theme changed - new pods: true - Deployment default/web: Replicas: 0/1
}

// The settings contain the address of the Service, which the API server allocates.
func ExampleChild_Live() {
	service := ownedresources.Build(func(shop *Shop) *corev1.Service {
		s := ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80})
		s.Spec.ClusterIP = "10.96.0.7" // the fake client allocates no address
		return s
	})
	settings := ownedresources.BuildFrom(service.Live(), func(shop *Shop, live *corev1.Service) (*corev1.ConfigMap, error) {
		return ownedresources.NewConfigMap(shop, map[string]string{"address": live.Spec.ClusterIP}), nil
	})
	c := fake.NewFakeClient()
	fmt.Println(ownedresources.Ensure(service, settings).Reconcile(context.Background(), c, webShop(ShopSpec{})))
	fmt.Println(get(c, "web", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[address:10.96.0.7]
}

func ExampleChild_LiveEach() {
	shards := ownedresources.BuildEach(func(shop *Shop) (all []*corev1.Service, err error) {
		for i := range shop.Spec.Shards {
			s := ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80})
			s.Name = fmt.Sprintf("%s-%d", shop.Name, i)
			s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", i+1) // the fake client allocates no address
			all = append(all, s)
		}
		return all, nil
	})
	settings := ownedresources.BuildFrom(shards.LiveEach(), func(shop *Shop, live []*corev1.Service) (*corev1.ConfigMap, error) {
		var addresses []string
		for _, s := range live {
			addresses = append(addresses, s.Spec.ClusterIP)
		}
		return ownedresources.NewConfigMap(shop, map[string]string{"addresses": strings.Join(addresses, ",")}), nil
	})
	c := fake.NewFakeClient()
	fmt.Println(ownedresources.Ensure(shards, settings).Reconcile(context.Background(), c, webShop(ShopSpec{Shards: 2})))
	fmt.Println(get(c, "web", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[addresses:10.96.0.1,10.96.0.2]
}

// The settings contain the theme of the shop and the address of its Service.
func ExampleCombine() {
	color := ownedresources.From(readColor, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	service := ownedresources.Build(func(shop *Shop) *corev1.Service {
		s := ownedresources.NewService(shop, nil, corev1.ServicePort{Port: 80})
		s.Spec.ClusterIP = "10.96.0.7" // the fake client allocates no address
		return s
	})
	live := service.Live()
	data := ownedresources.Combine(func(v *ownedresources.Values[*Shop]) map[string]string {
		return map[string]string{"color": color.Value(v), "address": live.Value(v).Spec.ClusterIP}
	}, color, live)
	settings := ownedresources.BuildFrom(data, func(shop *Shop, data map[string]string) (*corev1.ConfigMap, error) {
		return ownedresources.NewConfigMap(shop, data), nil
	})
	c := fake.NewFakeClient(theme("green"))
	fmt.Println(ownedresources.Ensure(service, settings).Reconcile(context.Background(), c, webShop(ShopSpec{})))
	fmt.Println(get(c, "web", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[address:10.96.0.7 color:green]
}
