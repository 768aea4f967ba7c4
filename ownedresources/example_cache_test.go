package ownedresources_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/opblocks/opblocks/ownedresources"
)

// The cache holds only those Deployments and Services that are children of Shops.
func ExampleOnlyChildren() {
	options := cache.Options{ByObject: ownedresources.OnlyChildren(&Shop{}, &appsv1.Deployment{}, &corev1.Service{})}
	for kind, by := range options.ByObject {
		if _, isService := kind.(*corev1.Service); isService {
			fmt.Println(by.Label)
		}
	}
	// Output: app.kubernetes.io/managed-by=shop-operator,app.kubernetes.io/name=shop
}
