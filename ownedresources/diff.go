package ownedresources

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Diff returns what [Apply] would do to each object, in the same order, and changes nothing. It reads the live objects from the API server
// instead of the cache, and sends dry runs, so the result includes defaults and the changes of admission plug-ins. It stops at the first
// error. It returns the same errors as Apply. If a step calls Apply, its method Preview can call Diff:
//
//	func (s *step) Preview(ctx context.Context, c client.Client, obj *v1.Shop) ([]preview.Change, error) {
//		return ownedresources.Diff(ctx, c, obj, settings(obj))
//	}
func Diff(ctx context.Context, c client.Client, owner client.Object, desired ...client.Object) ([]preview.Change, error) {
	o, err := owned.NewOwner(owner, c, nil)
	if err != nil {
		return nil, err
	}
	a := apply.New()
	declared, err := a.Declare(&o, desired)
	if err != nil {
		return nil, err
	}
	changes := make([]preview.Change, len(desired))
	for i := range declared {
		if changes[i], err = a.Previews().Diff(ctx, &o, declared[i]); err != nil {
			return nil, err
		}
	}
	return changes, nil
}
