package predicates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// LabelOption is an option of [Label].
type LabelOption func(*labelOptions)

type labelOptions struct{ equal func(a, b string) bool }

// FoldCase compares the label's value without regard to case (strings.EqualFold). Keys are always compared exactly.
func FoldCase() LabelOption {
	return func(o *labelOptions) { o.equal = strings.EqualFold }
}

// Label passes events of objects that have the label with this value, as [Matching] does: an update passes if the old or
// the new object has it. Values are compared exactly, unless [FoldCase] is given. An object without the label does not
// match, even if value is empty.
//
// A key or value that is not valid for a label matches no object. Check input such as a flag with [LabelSelector].
func Label(key, value string, options ...LabelOption) predicate.Predicate {
	o := labelOptions{equal: func(a, b string) bool { return a == b }}
	for _, option := range options {
		option(&o)
	}
	return Matching(func(obj client.Object) bool {
		actual, ok := obj.GetLabels()[key]
		return ok && o.equal(actual, value)
	})
}

// HasLabel passes events of objects that have the label with any value, also an empty one, as [Matching] does.
func HasLabel(key string) predicate.Predicate {
	return Matching(func(obj client.Object) bool {
		_, ok := obj.GetLabels()[key]
		return ok
	})
}

// LabelChanged passes updates that add, change or remove the label, and all events that are not updates, as
// [FieldChanged] does. Combine it with [GenerationChanged] behind a Label filter, because a change of labels does not
// change the generation:
//
//	predicate.And(predicates.Label(key, value), predicate.Or(predicates.GenerationChanged(), predicates.LabelChanged(key)))
func LabelChanged(key string) predicate.Predicate {
	return FieldChanged(func(obj client.Object) entry { return entryOf(obj.GetLabels(), key) })
}

// LabelSelector returns a selector for the label with this value. With it the manager's cache holds only the objects that
// [Label] matches, which saves memory:
//
//	cache.Options{ByObject: map[client.Object]cache.ByObject{&v1.User{}: {Label: selector}}}
//
// Use it only if nothing has to be done for an object that stops matching. Such a cache treats a change of the label as a
// deletion: it sends a delete event, and Get returns NotFound for an object that exists. The reconciler then does not clean
// up, and cannot distinguish the object from a deleted one. A selector also cannot fold case: objects whose label has
// another case are not in the cache.
//
// LabelSelector returns an error if key or value is not valid for a label. The error names both and the rule.
func LabelSelector(key, value string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(key, selection.Equals, []string{value})
	if err != nil {
		return nil, fmt.Errorf("label %s=%s: %w", key, value, err)
	}
	return labels.NewSelector().Add(*requirement), nil
}

// HasAnnotation passes events of objects that have the annotation with any value, also an empty one, as [Matching] does: an
// update passes if the old or the new object has it.
func HasAnnotation(key string) predicate.Predicate {
	return Matching(func(obj client.Object) bool {
		_, ok := obj.GetAnnotations()[key]
		return ok
	})
}

// AnnotationChanged passes updates that add, change or remove the annotation, and all events that are not updates, as
// [FieldChanged] does. Other annotations, which kubectl and controllers change often, do not count.
// (controller-runtime's AnnotationChangedPredicate passes a change of any annotation.)
func AnnotationChanged(key string) predicate.Predicate {
	return FieldChanged(func(obj client.Object) entry { return entryOf(obj.GetAnnotations(), key) })
}

// entry is the value of a key in a map. It distinguishes an empty value from an absent one.
type entry struct {
	value   string
	present bool
}

func entryOf(m map[string]string, key string) entry {
	value, present := m[key]
	return entry{value, present}
}
