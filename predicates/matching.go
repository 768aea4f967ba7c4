package predicates

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Matching passes events of objects for which match returns true:
//
//	Create   the object matches
//	Update   the old or the new object matches, so the controller gets one more event when an object stops matching
//	Delete   the last known state matches, or is not the final state (DeleteStateUnknown), which may have matched
//	Generic  the object matches
//
// T is the object type of the watch. An object of another type passes, because a lost event does more harm than an
// additional reconcile.
func Matching[T client.Object](match func(T) bool) predicate.Predicate { return matching(match) }

// Namespaces passes events of objects in these namespaces. Without an argument it passes all events, which suits an empty
// flag. The namespace of a cluster-scoped object is "". The namespace of an object never changes. So a deletion passes only
// if the last known state matches, even if that state is not the final one.
//
// The cache still holds the objects of all namespaces, and the operator needs permission to list them. To reduce both, use
// cache.Options.DefaultNamespaces; Namespaces is for a single watch.
func Namespaces(names ...string) predicate.Predicate {
	names = slices.Clone(names)
	return matchingImmutable(func(obj client.Object) bool {
		return len(names) == 0 || slices.Contains(names, obj.GetNamespace())
	})
}

func matching[T client.Object](match func(T) bool) predicate.Funcs {
	matches := func(obj client.Object) bool {
		t, ok := obj.(T)
		return !ok || match(t)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isNil(e.Object) && matches(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !isNil(e.ObjectOld) && matches(e.ObjectOld) || !isNil(e.ObjectNew) && matches(e.ObjectNew)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !isNil(e.Object) && (e.DeleteStateUnknown || matches(e.Object)) },
		GenericFunc: func(e event.GenericEvent) bool { return !isNil(e.Object) && matches(e.Object) },
	}
}

// matchingImmutable is like matching, for a property that never changes while an object exists. So a deletion passes
// only if the last known state matches, even if that state is not the final one.
func matchingImmutable(match func(client.Object) bool) predicate.Funcs {
	p := matching(match)
	p.DeleteFunc = func(e event.DeleteEvent) bool { return !isNil(e.Object) && match(e.Object) }
	return p
}
