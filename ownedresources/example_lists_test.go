package ownedresources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// One ConfigMap for each color of the theme. What falls out of the list is pruned.
func ExampleBuildEachFrom() {
	ctx := context.Background()
	c := fake.NewFakeClient(theme("green,blue"))
	colors := ownedresources.From(readColor, ownedresources.ReadsCached(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildEachFrom(colors, func(cm *corev1.ConfigMap, colors string) (all []*corev1.ConfigMap, err error) {
		for color := range strings.SplitSeq(colors, ",") {
			style := ownedresources.NewConfigMap(cm, map[string]string{"style.css": "body { background: " + color + " }"})
			style.Name += "-" + color
			all = append(all, style)
		}
		return all, nil
	}))
	fmt.Println(children.Reconcile(ctx, c, owner))
	for _, color := range []string{"green", "blue"} {
		var style corev1.ConfigMap
		fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-" + color}, &style), style.Data)
	}
	// Output:
	// <nil>
	// <nil> map[style.css:body { background: green }]
	// <nil> map[style.css:body { background: blue }]
}

// An object of that name belongs to somebody else. It is left alone, and the error names its owner.
func ExampleOwnershipError() {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-style",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "77aa", Controller: new(true)}},
	}}
	style := ownedresources.NewConfigMap(owner, map[string]string{"color": "green"})
	style.Name += "-style"
	_, err := ownedresources.Apply(context.Background(), fake.NewFakeClient(theirs), owner, style)
	if foreign, ok := errors.AsType[*ownedresources.OwnershipError](err); ok {
		fmt.Println(foreign.Kind, foreign.Name, foreign.Owner.Name)
	}
	fmt.Println(err)
	// Output:
	// ConfigMap shop/web-style other
	// ConfigMap shop/web-style belongs to ConfigMap other: it is left alone; choose another name
}
