package ownedresources_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/ownedresources"
)

// Each namespace that the owner names gets a copy of its settings.
func ExampleAnywhere() {
	ctx := context.Background()
	children := ownedresources.Ensure(ownedresources.BuildEach(func(cm *corev1.ConfigMap) (all []*corev1.ConfigMap, err error) {
		for _, namespace := range []string{"blue", "green"} {
			all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: cm.Data})
		}
		return all, nil
	}, ownedresources.Anywhere()))
	shop := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "6d1f",
		Finalizers: []string{children.FinalizerName()}, // package reconcile adds it
	}}
	c := fake.NewClientBuilder().WithObjects(shop).Build()
	if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
		fmt.Println(err)
	}
	fmt.Println(children.Reconcile(ctx, c, shop))

	var settings corev1.ConfigMap
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "blue", Name: "settings"}, &settings), len(settings.OwnerReferences))
	fmt.Println(settings.Annotations[record.Owner])
	// Output:
	// <nil>
	// <nil> 0
	// ConfigMap/shop/web/6d1f
}

// The user decides by an annotation whether the data stays.
func ExampleChild_Retain() {
	ctx := context.Background()
	children := ownedresources.Ensure(ownedresources.Build(func(cm *corev1.ConfigMap) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-data"}}
	}).Retain(func(cm *corev1.ConfigMap) bool { return cm.Annotations["example.com/keep"] == "yes" }))
	shop := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "6d1f", Annotations: map[string]string{"example.com/keep": "yes"},
		Finalizers: []string{children.FinalizerName()}, // package reconcile adds it
	}}
	c := fake.NewClientBuilder().WithObjects(shop).Build()

	for _, wish := range []string{"yes", "no"} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			fmt.Println(err)
		}
		shop.Annotations["example.com/keep"] = wish
		if err := c.Update(ctx, shop); err != nil {
			fmt.Println(err)
		}
		if err := children.Reconcile(ctx, c, shop); err != nil {
			fmt.Println(err)
		}
		var data corev1.Secret
		err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-data"}, &data)
		fmt.Println("keep:", wish, "owned:", metav1.IsControlledBy(&data, shop), err)
	}
	// Output:
	// keep: yes owned: false <nil>
	// keep: no owned: true <nil>
}
