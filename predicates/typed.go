package predicates

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Typed converts a predicate to a predicate for a typed source, such as
//
//	source.Kind(cache, &corev1.Pod{}, handler, predicates.Typed[*corev1.Pod](p))
//
// builder.WithPredicates needs no conversion.
func Typed[T client.Object](p predicate.Predicate) predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{
		CreateFunc: func(e event.TypedCreateEvent[T]) bool {
			return p.Create(event.CreateEvent{Object: e.Object, IsInInitialList: e.IsInInitialList})
		},
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return p.Update(event.UpdateEvent{ObjectOld: e.ObjectOld, ObjectNew: e.ObjectNew})
		},
		DeleteFunc: func(e event.TypedDeleteEvent[T]) bool {
			return p.Delete(event.DeleteEvent{Object: e.Object, DeleteStateUnknown: e.DeleteStateUnknown})
		},
		GenericFunc: func(e event.TypedGenericEvent[T]) bool {
			return p.Generic(event.GenericEvent{Object: e.Object})
		},
	}
}

// isNil reports whether obj is nil or holds a nil pointer, on which methods of an object would panic.
func isNil(obj client.Object) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
