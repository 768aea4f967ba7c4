package corpus

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// share finds, for each subject, the fields that the API server treats like a field of an earlier subject (see shapeOf). The tests do not
// change or drop such a field on its own again.
func share(t *testing.T, subjects []*subject) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range subjects {
		s.elsewhere = map[string]bool{}
		full := s.sent(t)
		for _, at := range fieldsOf(full) {
			shape := s.shapeOf(t, full, at)
			s.elsewhere[at.String()] = seen[shape]
			seen[shape] = true
		}
	}
}

// alone returns the fields that the tests change and drop one at a time in this subject.
func (s *subject) alone(t *testing.T) []path {
	t.Helper()
	return slices.DeleteFunc(fieldsOf(s.sent(t)), func(at path) bool { return s.elsewhere[at.String()] })
}

// shapeOf returns a string that is the same for all fields that the API server treats alike. It has the object's kind and the names of the
// fields on the path. For a list item it says whether the item is the first one, and whether it is the only one. For the value it has the
// type, and whether the value is empty. If the API accepts only a few values in the field, it also has the value.
func (s *subject) shapeOf(t *testing.T, object map[string]any, at path) string {
	t.Helper()
	var shape strings.Builder
	fmt.Fprint(&shape, s.kind(t).GVK)
	for i, step := range at {
		if _, item := step.(int); item {
			list, _ := at[:i].in(object)
			step = fmt.Sprintf("first %t, alone %t", step == 0, len(list.([]any)) == 1)
		}
		fmt.Fprintf(&shape, "/%s", step)
	}
	value, _ := at.in(object)
	v := reflect.ValueOf(value)
	fmt.Fprintf(&shape, " %T, empty %t", value, value == nil || v.IsZero() || isLeaf(value) && !v.Comparable())
	if slices.ContainsFunc(alternatives, func(group []any) bool { return isLeaf(value) && v.Comparable() && slices.Contains(group, value) }) {
		fmt.Fprintf(&shape, ", %v", value)
	}
	return shape.String()
}

// shapes is a set of results of shapeOf that several subtests use concurrently.
type shapes struct{ m sync.Map }

func (s *shapes) add(shape string)      { s.m.Store(shape, true) }
func (s *shapes) has(shape string) bool { _, has := s.m.Load(shape); return has }
