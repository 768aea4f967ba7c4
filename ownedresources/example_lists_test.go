package ownedresources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// The set builds one ConfigMap for each color of the theme. If a color is removed from the list, its ConfigMap is
// pruned.
func ExampleBuildEachFrom() {
	c := fake.NewFakeClient(theme("green,blue"))
	colors := ownedresources.From(readColor, ownedresources.ReadsCached(&corev1.ConfigMap{}, themeName))
	children := ownedresources.Ensure(ownedresources.BuildEachFrom(colors, func(shop *Shop, colors string) (all []*corev1.ConfigMap, err error) {
		for color := range strings.SplitSeq(colors, ",") {
			style := ownedresources.NewConfigMap(shop, map[string]string{"style.css": "body { background: " + color + " }"})
			style.Name += "-" + color
			all = append(all, style)
		}
		return all, nil
	}))
	fmt.Println(children.Reconcile(context.Background(), c, webShop(ShopSpec{})))
	fmt.Println(get(c, "web-green", &corev1.ConfigMap{}).Data)
	fmt.Println(get(c, "web-blue", &corev1.ConfigMap{}).Data)
	// Output:
	// <nil>
	// map[style.css:body { background: green }]
	// map[style.css:body { background: blue }]
}

// Somebody else has created an object with the name of the child. The object is not changed, and the error names its
// owner.
func ExampleOwnershipError() {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Blog", Name: "other", UID: "77aa", Controller: new(true)}},
	}}
	shop := webShop(ShopSpec{})
	_, err := ownedresources.Apply(context.Background(), fake.NewFakeClient(theirs), shop, ownedresources.NewConfigMap(shop, nil))
	if foreign, ok := errors.AsType[*ownedresources.OwnershipError](err); ok {
		fmt.Println(foreign.Kind, foreign.Name, "belongs to", foreign.Owner.Kind, foreign.Owner.Name)
	}
	fmt.Println(err)
	// Output:
	// ConfigMap default/web belongs to Blog other
	// ConfigMap default/web belongs to Blog other: it is left alone; choose another name
}
