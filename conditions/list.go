package conditions

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is the condition list of one object, for generic code that does not know the condition struct. Pass the result of
// All to [Summarize] for a summary. [Editor.AsList], [Editor.Bind], [History] and [Editor.History] return one.
type List interface {
	// All returns all conditions in the order of the list, as a new slice.
	All() []metav1.Condition
	// Get returns the condition of this type, and whether there is one; see [Get].
	Get(conditionType string) (metav1.Condition, bool)
	// Set stores c, and returns the condition that is stored now and whether the list changed; see [Set].
	Set(c metav1.Condition) (stored metav1.Condition, changed bool, err error)
	// Remove removes the conditions of this type, and reports whether there was one; see [Remove].
	Remove(conditionType string) (changed bool)
}

// Binder makes a [List] from a pointer that was found by reflection. Every [Editor] is a Binder.
type Binder interface {
	// Bind returns the List for a *[]C, or for a pointer to a named type of []C. For any other value, and for a nil
	// pointer, it returns an error that names the types.
	Bind(list any) (List, error)
}

var _ Binder = Editor[metav1.Condition]{}

// AsList returns the list as a [List]. Its methods change *list. The pointer must not be nil.
func (e Editor[C]) AsList(list *[]C) List { return bound[C]{editor: e, list: list} }

// Bind implements [Binder].
func (e Editor[C]) Bind(list any) (List, error) {
	if typed, ok := list.(*[]C); ok && typed != nil {
		return e.AsList(typed), nil
	}
	want := reflect.TypeFor[*[]C]()
	v := reflect.ValueOf(list)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || !v.CanConvert(want) {
		return nil, fmt.Errorf("conditions: cannot use a %T as a list of conditions: pass a %v that is not nil", list, want)
	}
	return e.AsList(v.Convert(want).Interface().(*[]C)), nil
}

// bound is the [List] for a pointer to a list. It calls the methods of an editor.
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
