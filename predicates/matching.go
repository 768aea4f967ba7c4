package predicates

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Matching passes events of objects for which match is true. An update passes when the old or the new object matches, so
// that an object that leaves is noticed, once. A deletion passes when the last known state matches, and also when the
// final state is unknown, since it may have matched.
//
//	Create   the object matches
//	Update   the old or the new object matches
//	Delete   the last known state matches, or is not the final one
//	Generic  the object matches
//
// T is the type that the watch is for. An object of another type passes: an event too many costs a pass, one that is lost
// is lost.
func Matching[T client.Object](match func(T) bool) predicate.Predicate { return matching(match) }

func matching[T client.Object](match func(T) bool) predicate.Funcs {
	is := func(obj client.Object) bool {
		t, ok := obj.(T)
		return !ok || match(t)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isNil(e.Object) && is(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !isNil(e.ObjectOld) && is(e.ObjectOld) || !isNil(e.ObjectNew) && is(e.ObjectNew)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !isNil(e.Object) && (e.DeleteStateUnknown || is(e.Object)) },
		GenericFunc: func(e event.GenericEvent) bool { return !isNil(e.Object) && is(e.Object) },
	}
}

// matchingForLife is matching of what cannot change while an object lives, so that the last known state is as good as the
// final one.
func matchingForLife(match func(client.Object) bool) predicate.Funcs {
	p := matching(match)
	p.DeleteFunc = func(e event.DeleteEvent) bool { return !isNil(e.Object) && match(e.Object) }
	return p
}

// Namespaces passes events of all kinds of objects in these namespaces; without any, in all, as an empty flag means. The
// namespace of a cluster-scoped object is "".
//
// The cache still holds all namespaces, and needs the permissions for that. To reduce both use cache.Options.DefaultNamespaces;
// this is for one watch among others.
func Namespaces(names ...string) predicate.Predicate {
	names = slices.Clone(names)
	return matchingForLife(func(obj client.Object) bool {
		return len(names) == 0 || slices.Contains(names, obj.GetNamespace())
	})
}
