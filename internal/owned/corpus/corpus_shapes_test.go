package corpus

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// share notes for each subject which shapes of its fields an earlier subject has too. So each shape is changed and dropped alone only once.
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

// alone returns the fields that the subject changes and drops alone.
func (s *subject) alone(t *testing.T) []path {
	t.Helper()
	return slices.DeleteFunc(fieldsOf(s.sent(t)), func(at path) bool { return s.elsewhere[at.String()] })
}

// shapeOf returns what a field has in common with others: the kind of the object, the names of the fields on the path, whether an item is the
// only one of its list, the first or a later one, and the type of the value, whether it is empty, and which one it is if the API has only a few.
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

// shapes is a set of shapes of fields that several subtests use at a time.
type shapes struct{ m sync.Map }

func (s *shapes) add(shape string)      { s.m.Store(shape, true) }
func (s *shapes) has(shape string) bool { _, has := s.m.Load(shape); return has }
