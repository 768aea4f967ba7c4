package predicates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// LabelOption changes how [Label] compares.
type LabelOption func(*labelOptions)

type labelOptions struct{ equal func(a, b string) bool }

// FoldCase ignores the case of the label's value. Keys are always compared as they are.
func FoldCase() LabelOption {
	return func(o *labelOptions) { o.equal = strings.EqualFold }
}

// Label passes events of objects that have the label with this value, as [Matching] does: an update passes when the old or
// the new object has it. An object without the label never matches, also if the value is empty.
//
// A key or a value that no label can have matches nothing: check what comes from a flag with [LabelSelector].
func Label(key, value string, options ...LabelOption) predicate.Predicate {
	o := labelOptions{equal: func(a, b string) bool { return a == b }}
	for _, option := range options {
		option(&o)
	}
	return Matching(func(obj client.Object) bool {
		have, ok := obj.GetLabels()[key]
		return ok && o.equal(have, value)
	})
}

// HasLabel is [Label] with any value, also an empty one.
func HasLabel(key string) predicate.Predicate {
	return Matching(func(obj client.Object) bool {
		_, ok := obj.GetLabels()[key]
		return ok
	})
}

// LabelChanged passes updates that add, change or remove the label, and everything that is no update, as [FieldChanged]
// does. Put it beside [GenerationChanged] under a Label filter, since relabelling leaves the generation alone:
//
//	predicate.And(predicates.Label(key, value), predicate.Or(predicates.GenerationChanged(), predicates.LabelChanged(key)))
func LabelChanged(key string) predicate.Predicate {
	return FieldChanged(func(obj client.Object) entry { return entryOf(obj.GetLabels(), key) })
}

// LabelSelector is what [Label] matches as a selector for the manager's cache, to hold fewer objects in memory:
//
//	cache.Options{ByObject: map[client.Object]cache.ByObject{&v1.User{}: {Label: selector}}}
//
// Use it only where nothing has to be done for an object that leaves. To such a cache a relabelled object is deleted: its
// event is a deletion, and Get says NotFound of an object that exists, so that nothing cleans up for it, and it cannot be
// told from one that is gone. A selector cannot fold case either: an object whose label is written in another case is not
// there at all.
//
// The error says what is wrong with the key or the value.
func LabelSelector(key, value string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(key, selection.Equals, []string{value})
	if err != nil {
		return nil, fmt.Errorf("label %s=%s: %w", key, value, err)
	}
	return labels.NewSelector().Add(*requirement), nil
}

// entry tells an empty value from none.
type entry struct {
	value string
	there bool
}

func entryOf(m map[string]string, key string) entry {
	value, there := m[key]
	return entry{value, there}
}

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
