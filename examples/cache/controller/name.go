package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// checkName ends the pass if no StatefulSet or Service can have the name of a Cache, before anything is created.
func checkName(_ context.Context, _ client.Client, c *storev1alpha1.Cache) error {
	path := field.NewPath("metadata", "name")
	errs := append(ownedresources.ValidateStatefulSetName(c.Name, path), ownedresources.ValidateServiceName(c.Name, path)...)
	if len(errs) > 0 {
		return reconcile.Halt(reconcile.Stalled("InvalidName", fmt.Errorf("nothing is created: %w", errs.ToAggregate())))
	}
	return nil
}
