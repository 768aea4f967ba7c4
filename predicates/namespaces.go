package predicates

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

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
