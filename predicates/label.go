package predicates

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Metadata is a label or an annotation of the objects of a watch. Make it with [Label] or [Annotation]. Its methods return predicates, for every
// type of objects. Keys are compared exactly. An object without the key does not match, even if the value is empty.
type Metadata struct {
	key string
	in  func(client.Object) map[string]string
}

// Label returns the label with a key. If the key or a value is not valid for a label, no object matches. Check input such as a flag
// with labels.Set.AsValidatedSelector of apimachinery, whose selector can also limit which objects the manager's cache holds.
func Label(key string) Metadata { return Metadata{key, client.Object.GetLabels} }

// Annotation returns the annotation with a key.
func Annotation(key string) Metadata { return Metadata{key, client.Object.GetAnnotations} }

// Equals passes events of objects that have the key with this value. As with [Matching], an update passes if the old or the new object
// matches.
func (m Metadata) Equals(value string) predicate.Predicate {
	return m.matching(func(v string) bool { return v == value })
}

// EqualsFold is [Metadata.Equals] without regard to the case of the value (strings.EqualFold).
func (m Metadata) EqualsFold(value string) predicate.Predicate {
	return m.matching(func(v string) bool { return strings.EqualFold(v, value) })
}

// Exists passes events of objects that have the key with any value, also an empty one, as [Matching] does.
func (m Metadata) Exists() predicate.Predicate { return m.matching(func(string) bool { return true }) }

// matching passes events of objects that have the key, with a value that matches.
func (m Metadata) matching(matches func(value string) bool) predicate.Predicate {
	return Matching(func(obj client.Object) bool {
		value, ok := m.in(obj)[m.key]
		return ok && matches(value)
	})
}

// Changed passes updates that add, change or remove the key, and all events that are not updates, as [FieldChanged] does. Other labels and
// annotations have no effect. (controller-runtime's AnnotationChangedPredicate passes a change of any annotation.) Combine it with
// [GenerationChanged] behind a filter of a label, because a change of labels does not change the generation:
//
//	target := predicates.Label("target")
//	predicate.And(target.Equals("blue"), predicate.Or(predicates.GenerationChanged(), target.Changed()))
func (m Metadata) Changed() predicate.Predicate {
	return changed(func(before, after client.Object) bool {
		was, had := m.in(before)[m.key]
		is, has := m.in(after)[m.key]
		return was != is || had != has
	})
}
