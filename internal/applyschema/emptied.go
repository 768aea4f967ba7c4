package applyschema

import (
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// NullEmptied sets a struct or a list of after to null if it is empty and was not empty in before, because fields were removed from it.
// structured-merge-diff v6.4 and later does so itself, and NullEmptied does nothing.
func NullEmptied(r Schema, before, after any) {
	if keepsEmptied() {
		nullEmptied(r, before, after)
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

func nullEmptied(r Schema, before, after any) {
	switch after := after.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		for k, v := range after {
			child := r.Child(k)
			nullEmptied(child, b[k], v)
			if isEmpty(v) && b[k] != nil && !isEmpty(b[k]) && !isWhole(child) {
				after[k] = nil
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
				nullEmptied(r.Element(), items[b], after[i])
			}
		}
	}
}

// isWhole reports whether the type is a map or a list that belongs to one writer as a whole. No single field or item is removed from such a
// value, so if it is empty, it was sent empty.
func isWhole(r Schema) bool { return r.IsAtomicMap() || r.atom.List != nil && !r.IsAssociative() }

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
