package applyschema

import (
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// DropEmptied drops the structs and lists of after that are empty, and were not in before, from which fields were removed, except those that are
// empty in want. structured-merge-diff does so itself since v6.4: then DropEmptied does nothing.
func DropEmptied(r Schema, want, before, after any) {
	if keepsEmptied() {
		dropEmptied(r, before, after)
		r.FillEmpty(want, after)
	}
}

// keepsEmptied reports whether structured-merge-diff keeps a struct whose last field it removes.
var keepsEmptied = sync.OnceValue(func() bool {
	value, err := typed.DeducedParseableType.FromUnstructured(map[string]any{"struct": map[string]any{"field": "x"}})
	if err != nil {
		return false
	}
	left, _ := value.RemoveItems(fieldpath.NewSet(fieldpath.MakePathOrDie("struct", "field"))).AsValue().Unstructured().(map[string]any)
	return left["struct"] != nil
})

func dropEmptied(r Schema, before, after any) {
	switch after := after.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		for k, v := range after {
			dropEmptied(r.Child(k), b[k], v)
			if isEmpty(v) && b[k] != nil && !isEmpty(b[k]) {
				delete(after, k)
			}
		}
	case []any:
		items, _ := before.([]any)
		if !r.IsAssociative() {
			return
		}
		find := r.finder(items)
		for i := range after {
			if b := find(after[i]); b >= 0 {
				dropEmptied(r.Element(), items[b], after[i])
			}
		}
	}
}

// isEmpty reports whether a value is a map or a list without entries.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
