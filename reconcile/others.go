package reconcile

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// List gives all objects of T's kind, as the cache has them: they must only be read.
func List[T client.Object](ctx context.Context, c client.Client, options ...client.ListOption) (iter.Seq[T], error) {
	kind, err := apiutil.GVKForObject(reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T), c.Scheme())
	if err != nil {
		return nil, err
	}
	kind.Kind += "List"
	list, err := c.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	if err := c.List(ctx, list.(client.ObjectList), append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	return func(yield func(T) bool) {
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the error only ends it
			if !yield(item.(T)) {
				return context.Canceled
			}
			return nil
		})
	}, nil
}

// Waking brings passes of other objects of the kind when what claim gives of one changes, or when one
// goes: of those that whom names, such as the next in a queue that the objects' statuses make. An
// object that comes wakes nobody. Both functions must only read; the objects are read when whom
// ranges over them.
func Waking[T client.Object, F comparable](claim func(obj T) F, whom func(all iter.Seq[T]) []types.NamespacedName) StepOption {
	return func(o *stepOptions) {
		o.wakes = append(o.wakes, func(mgr ctrl.Manager, b *ctrl.Builder) {
			next := func(ctx context.Context, _ client.Object) (requests []ctrl.Request) {
				for _, name := range whom(lazily[T](ctx, mgr.GetClient())) {
					requests = append(requests, ctrl.Request{NamespacedName: name})
				}
				return requests
			}
			b.Watches(reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T), handler.EnqueueRequestsFromMapFunc(next),
				builder.WithPredicates(predicate.Funcs{
					CreateFunc: func(event.CreateEvent) bool { return false },
					UpdateFunc: func(e event.UpdateEvent) bool {
						before, ok := e.ObjectOld.(T)
						after, alike := e.ObjectNew.(T)
						return ok && alike && claim(before) != claim(after)
					},
				}))
		})
	}
}

func lazily[T client.Object](ctx context.Context, c client.Client) iter.Seq[T] {
	return func(yield func(T) bool) {
		all, err := List[T](ctx, c)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find who waits")
			return
		}
		all(yield)
	}
}
