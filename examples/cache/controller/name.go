package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// checkName ends the pass if no StatefulSet or Service can have the name of a Cache, before anything is created.
func checkName(_ context.Context, _ client.Client, c *storev1alpha1.Cache) error {
	path := field.NewPath("metadata", "name")
	errs := append(ownedresources.ValidateName[appsv1.StatefulSet](c.Name, path), ownedresources.ValidateName[corev1.Service](c.Name, path)...)
	if len(errs) > 0 {
		return reconcile.Halt(reconcile.Stalled("InvalidName", fmt.Errorf("nothing is created: %w", errs.ToAggregate())))
	}
	return nil
}
