package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is a constraint: *T is a Kubernetes object.
type object[T any] interface {
	*T
	client.Object
}

// stepEach lists all objects of a kind, and takes a step for each object that is not being deleted. items are the items of the list. verb
// says in errors what the step does to the object.
func stepEach[T any, P object[T]](ctx context.Context, c client.Client, list client.ObjectList, items *[]T, verb, kind string, step func(context.Context, client.Client, P) error) error {
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("list %ss: %w", kind, err)
	}
	for i := range *items {
		obj := P(&(*items)[i])
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		if err := step(ctx, c, obj); err != nil {
			return fmt.Errorf("%s %s %s: %w", verb, kind, client.ObjectKeyFromObject(obj), err)
		}
	}
	return nil
}
