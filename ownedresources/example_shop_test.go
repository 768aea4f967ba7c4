package ownedresources_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
)

// Shop is the custom resource of the examples. Its spec asks for a version, a content, a number of shards and so on. The operator of the
// examples builds its children from these fields.
type (
	Shop     = ownedresources.Shop
	ShopSpec = ownedresources.ShopSpec
)

// webShop returns the Shop of the examples. It has a UID, as every stored object has.
func webShop(spec ShopSpec) *Shop {
	return &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "6d1f"}, Spec: spec}
}

// get reads the object of a name into obj, and returns obj.
func get[T client.Object](c client.Client, name string, obj T) T {
	must(c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, obj))
	return obj
}

// must ends an example at an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
