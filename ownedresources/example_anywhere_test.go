package ownedresources_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
)

// Two other namespaces get a copy of the content. Such a child has no owner reference; an annotation names its owner.
func ExampleChild_Anywhere() {
	children := ownedresources.Ensure(ownedresources.BuildEach(func(shop *Shop) (all []*corev1.ConfigMap, err error) {
		for _, namespace := range []string{"blue", "green"} {
			content := ownedresources.NewConfigMap(shop, map[string]string{"content": shop.Spec.Content})
			content.Namespace = namespace
			all = append(all, content)
		}
		return all, nil
	}).Anywhere())
	shop := webShop(ShopSpec{Content: "sale"})
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewFakeClient(shop)
	fmt.Println(children.Reconcile(context.Background(), c, get(c, "web", shop)))

	var content corev1.ConfigMap
	must(c.Get(context.Background(), client.ObjectKey{Namespace: "blue", Name: "web"}, &content))
	fmt.Println(content.Data, len(content.OwnerReferences), content.Annotations["opblocks.dev/owner"])
	// Output:
	// <nil>
	// map[content:sale] 0 Shop.example.com/default/web/6d1f
}

// The field .spec.keepData decides whether the data stays when the Shop is deleted.
func ExampleChild_Retain() {
	ctx := context.Background()
	children := ownedresources.Ensure(ownedresources.Build(func(shop *Shop) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: shop.Name + "-data"}}
	}).Retain(func(shop *Shop) bool { return shop.Spec.KeepData }))
	shop := webShop(ShopSpec{})
	shop.Finalizers = []string{children.FinalizerName()} // package reconcile adds it
	c := fake.NewFakeClient(shop)

	for _, keep := range []bool{true, false} {
		shop = get(c, "web", shop)
		shop.Spec.KeepData = keep
		must(c.Update(ctx, shop))
		must(children.Reconcile(ctx, c, shop))
		data := get(c, "web-data", &corev1.Secret{})
		fmt.Println("keep:", keep, "owned:", metav1.IsControlledBy(data, shop))
	}
	// Output:
	// keep: true owned: false
	// keep: false owned: true
}
