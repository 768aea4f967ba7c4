package reconcile

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List lists objects into an empty list of their kind, such as &appsv1.DeploymentList{}, and returns an iterator over
// them. They are not copied from the cache, so they must not be changed.
func List[T client.Object](ctx context.Context, r client.Reader, into client.ObjectList, options ...client.ListOption) (iter.Seq[T], error) {
	if err := r.List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %T: %w", into, err)
	}
	return func(yield func(T) bool) {
		_ = meta.EachListItem(into, func(item runtime.Object) error { // the error only ends the iteration
			if typed, ok := item.(T); ok && !yield(typed) {
				return context.Canceled
			}
			return nil
		})
	}, nil
}
