package run

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// createWithStatus creates a copy of the object, with its status.
func createWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	made := obj.DeepCopyObject().(client.Object)
	if err := c.Create(ctx, made); err != nil {
		return err
	}
	if !state.HasStatus(obj) || reflect.DeepEqual(state.StatusOf(obj), state.StatusOf(made)) {
		return nil
	}
	with := obj.DeepCopyObject().(client.Object)
	with.SetUID(made.GetUID())
	with.SetResourceVersion(made.GetResourceVersion())
	return c.Status().Update(ctx, with)
}

// UpdateWithStatus updates the object, and then its status if the API server ignored the status in the first request.
func UpdateWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	with := obj.DeepCopyObject().(client.Object)
	if err := c.Update(ctx, obj); err != nil {
		return err
	}
	if reflect.DeepEqual(state.StatusOf(with), state.StatusOf(obj)) {
		return nil
	}
	with.SetResourceVersion(obj.GetResourceVersion())
	return c.Status().Update(ctx, with)
}
