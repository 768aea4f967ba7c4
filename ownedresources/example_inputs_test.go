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
func themeName(*corev1.ConfigMap) []types.NamespacedName {
	return []types.NamespacedName{{Name: "theme"}} // in the owner's namespace
}

// readColor returns the color of the theme. It reads what themeName declares.
func readColor(ctx context.Context, r client.Reader, cm *corev1.ConfigMap) (string, error) {
	var read corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: "theme"}, &read)
	return read.Data["color"], err
}

func theme(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theme", UID: "7a01"}, Data: map[string]string{"color": color},
	}
}

// With a manager, a change of the ConfigMap triggers a reconcile.
func ExampleBuildFrom() {
	ctx := context.Background()
	c := fake.NewFakeClient(theme("green"))
	color := ownedresources.From(func(ctx context.Context, r client.Reader, cm *corev1.ConfigMap) (string, error) {
		var read corev1.ConfigMap
		err := r.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: "theme"}, &read)
		return read.Data["color"], err
	}, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(color, func(cm *corev1.ConfigMap, color string) (*corev1.Secret, error) {
		style := ownedresources.NewSecret(cm, map[string][]byte{"style.css": []byte("body { background: " + color + " }")})
		style.Name += "-style"
		return style, nil
	}))
	fmt.Println(children.Reconcile(ctx, c, owner))
	var style corev1.Secret
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-style"}, &style), string(style.Data["style.css"]))
	// Output:
	// <nil>
	// <nil> body { background: green }
}

// The child stays as it is while an object that its input reads is missing.
func ExampleFrom() {
	color := ownedresources.From(readColor, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(color, func(cm *corev1.ConfigMap, color string) (*corev1.Secret, error) {
		return ownedresources.NewSecret(cm, map[string][]byte{"color": []byte(color)}), nil
	}))
	err := children.Reconcile(context.Background(), fake.NewFakeClient(), owner)
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

// The pods are replaced when the theme changes, and stay as they are when somebody deletes it.
func ExampleVersionHash() {
	ctx := context.Background()
	c := fake.NewFakeClient(theme("green"))
	version := ownedresources.VersionHash(ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildFrom(version, func(cm *corev1.ConfigMap, hash string) (*appsv1.Deployment, error) {
		d := ownedresources.NewDeployment(cm, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
		d.Spec.Template.Annotations = map[string]string{usesTheme: hash}
		return d, nil
	}).KeepWhileMissing(func(live, desired *appsv1.Deployment) {
		desired.Spec.Template.Annotations[usesTheme] = live.Spec.Template.Annotations[usesTheme]
	}))
	var before string
	reconcile := func(what string) {
		err := children.Reconcile(ctx, c, owner)
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(owner), &d); err != nil {
			fmt.Println(err)
		}
		hash := d.Spec.Template.Annotations[usesTheme]
		fmt.Println(what, "- new pods:", hash != before, "-", err)
		before = hash
	}
	reconcile("created")
	if err := c.Update(ctx, theme("blue")); err != nil {
		fmt.Println(err)
	}
	reconcile("theme changed")
	if err := c.Delete(ctx, theme("blue")); err != nil {
		fmt.Println(err)
	}
	reconcile("theme deleted")
	// Output:
	// created - new pods: true - Deployment shop/web: Replicas: 0/1
	// theme changed - new pods: true - Deployment shop/web: Replicas: 0/1
	// theme deleted - new pods: false - child Deployment: ConfigMap theme: not found; Deployment shop/web: Replicas: 0/1
}

// The pods are replaced when the content of the theme changes, and not when somebody labels it. The hash is keyed, so it tells nothing
// about the content.
func ExampleContentHash() {
	ctx := context.Background()
	c := fake.NewFakeClient(theme("green"))
	key := ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Secret {
		s := ownedresources.NewSecret(cm, nil)
		s.Name += "-hash-key"
		return s
	}).Generate("key", 32)
	content := ownedresources.ContentHash(key, "key", ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(key, ownedresources.BuildFrom(content, func(cm *corev1.ConfigMap, hash string) (*appsv1.Deployment, error) {
		d := ownedresources.NewDeployment(cm, nil, corev1.Container{Name: "web", Image: "nginx:1.27"})
		d.Spec.Template.Annotations = map[string]string{usesTheme: hash}
		return d, nil
	}))
	var before string
	reconcile := func(what string) {
		err := children.Reconcile(ctx, c, owner)
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKeyFromObject(owner), &d); err != nil {
			fmt.Println(err)
		}
		hash := d.Spec.Template.Annotations[usesTheme]
		fmt.Println(what, "- new pods:", hash != before, "-", err)
		before = hash
	}
	reconcile("created")
	labelled := theme("green")
	labelled.Labels = map[string]string{"season": "winter"}
	if err := c.Update(ctx, labelled); err != nil {
		fmt.Println(err)
	}
	reconcile("theme labelled")
	if err := c.Update(ctx, theme("blue")); err != nil {
		fmt.Println(err)
	}
	reconcile("theme changed")
	// Output:
	// created - new pods: true - Deployment shop/web: Replicas: 0/1
	// theme labelled - new pods: false - Deployment shop/web: Replicas: 0/1
	// theme changed - new pods: true - Deployment shop/web: Replicas: 0/1
}

// The settings contain the address of the Service, which the API server allocates.
func ExampleChild_Live() {
	ctx, c := context.Background(), fake.NewFakeClient()
	service := ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
		s := ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
		s.Spec.ClusterIP = "10.96.0.7" // the fake client allocates none
		return s
	})
	settings := ownedresources.BuildFrom(service.Live(), func(cm *corev1.ConfigMap, live *corev1.Service) (*corev1.ConfigMap, error) {
		settings := ownedresources.NewConfigMap(cm, map[string]string{"address": live.Spec.ClusterIP})
		settings.Name += "-settings"
		return settings, nil
	})
	fmt.Println(ownedresources.Ensure(service, settings).Reconcile(ctx, c, owner))
	var created corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &created), created.Data)
	// Output:
	// <nil>
	// <nil> map[address:10.96.0.7]
}

func ExampleChild_LiveEach() {
	ctx, c := context.Background(), fake.NewFakeClient()
	shards := ownedresources.BuildEach(func(cm *corev1.ConfigMap) (all []*corev1.Service, err error) {
		for i := range 2 {
			s := ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
			s.Name = fmt.Sprintf("%s-%d", cm.Name, i)
			s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", i+1) // the fake client allocates none
			all = append(all, s)
		}
		return all, nil
	})
	settings := ownedresources.BuildFrom(shards.LiveEach(), func(cm *corev1.ConfigMap, live []*corev1.Service) (*corev1.ConfigMap, error) {
		var addresses []string
		for _, s := range live {
			addresses = append(addresses, s.Spec.ClusterIP)
		}
		settings := ownedresources.NewConfigMap(cm, map[string]string{"addresses": strings.Join(addresses, ",")})
		settings.Name += "-settings"
		return settings, nil
	})
	fmt.Println(ownedresources.Ensure(shards, settings).Reconcile(ctx, c, owner))
	var created corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &created), created.Data)
	// Output:
	// <nil>
	// <nil> map[addresses:10.96.0.1,10.96.0.2]
}

// The settings contain the theme of the shop and the address of its Service.
func ExampleCombine() {
	ctx, c := context.Background(), fake.NewFakeClient(theme("green"))
	color := ownedresources.From(readColor, ownedresources.Reads(&corev1.ConfigMap{}, themeName))
	service := ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Service {
		s := ownedresources.NewService(cm, nil, corev1.ServicePort{Port: 80})
		s.Spec.ClusterIP = "10.96.0.7" // the fake client allocates none
		return s
	})
	live := service.Live()
	data := ownedresources.Combine(func(v *ownedresources.Values[*corev1.ConfigMap]) map[string]string {
		return map[string]string{"color": color.Value(v), "address": live.Value(v).Spec.ClusterIP}
	}, color, live)
	settings := ownedresources.BuildFrom(data, func(cm *corev1.ConfigMap, data map[string]string) (*corev1.ConfigMap, error) {
		settings := ownedresources.NewConfigMap(cm, data)
		settings.Name += "-settings"
		return settings, nil
	})
	fmt.Println(ownedresources.Ensure(service, settings).Reconcile(ctx, c, owner))
	var created corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-settings"}, &created), created.Data)
	// Output:
	// <nil>
	// <nil> map[address:10.96.0.7 color:green]
}
