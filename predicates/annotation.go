package predicates

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// HasAnnotation passes events of objects that have the annotation, with any value, as [Matching] does: an update passes when
// the old or the new object has it.
func HasAnnotation(key string) predicate.Predicate {
	return Matching(func(obj client.Object) bool {
		_, ok := obj.GetAnnotations()[key]
		return ok
	})
}

// AnnotationChanged passes updates that add, change or remove the annotation, and everything that is no update, as
// [FieldChanged] does. Other annotations, which kubectl and controllers write often, do not count; controller-runtime's
// AnnotationChangedPredicate passes them all.
func AnnotationChanged(key string) predicate.Predicate {
	return FieldChanged(func(obj client.Object) entry { return entryOf(obj.GetAnnotations(), key) })
}
