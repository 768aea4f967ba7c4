package conditions

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is the conditions of one object, whatever their struct: what generic code works on. All and [Summarize] give a summary.
type List interface {
	// All returns what the list says, in its order, as a new slice.
	All() []metav1.Condition
	Get(conditionType string) (metav1.Condition, bool)
	Set(c metav1.Condition) (stored metav1.Condition, changed bool, err error)
	Remove(conditionType string) (changed bool)
}

// Binder makes a List of a pointer found by reflection. Every [Editor] is one.
type Binder interface {
	// Bind returns the list behind a *[]C, or behind a pointer to a named type of []C.
	// Any other value, or a nil pointer, is an error that names the types.
	Bind(list any) (List, error)
}

var _ Binder = Editor[metav1.Condition]{}

// AsList returns the list as a [List]. Changes go to *list, which must not be nil.
func (e Editor[C]) AsList(list *[]C) List { return bound[C]{editor: e, list: list} }

// Bind is [Binder].
func (e Editor[C]) Bind(list any) (List, error) {
	if typed, ok := list.(*[]C); ok && typed != nil {
		return e.AsList(typed), nil
	}
	want := reflect.TypeFor[*[]C]()
	v := reflect.ValueOf(list)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || !v.CanConvert(want) {
		return nil, fmt.Errorf("conditions: %T is not a list to work on; a %v that is not nil is", list, want)
	}
	return e.AsList(v.Convert(want).Interface().(*[]C)), nil
}

type bound[C any] struct {
	editor Editor[C]
	list   *[]C
}

func (b bound[C]) All() []metav1.Condition { return b.editor.read(*b.list) }

func (b bound[C]) Get(conditionType string) (metav1.Condition, bool) {
	c, ok := b.editor.Get(*b.list, conditionType)
	if !ok {
		return metav1.Condition{}, false
	}
	return b.editor.adapter.Read(c), true
}

func (b bound[C]) Set(c metav1.Condition) (metav1.Condition, bool, error) {
	stored, changed, err := b.editor.Set(b.list, c)
	return b.editor.adapter.Read(stored), changed, err
}

func (b bound[C]) Remove(conditionType string) bool { return b.editor.Remove(b.list, conditionType) }

func (e Editor[C]) read(list []C) []metav1.Condition {
	all := make([]metav1.Condition, len(list))
	for i := range list {
		all[i] = e.adapter.Read(list[i])
	}
	return all
}
