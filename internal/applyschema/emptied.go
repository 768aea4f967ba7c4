package applyschema

import (
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// NullEmptied looks for structs and lists that have values in before and are empty in after, because their fields or items were removed. It
// sets each of them to null in after. structured-merge-diff v6.4 and later does so itself. With such a version, NullEmptied does nothing.
func NullEmptied(r Schema, before, after any) {
	if keepsEmptied() {
		nullEmptied(r, before, after)
	}
}

// keepsEmptied reports whether structured-merge-diff keeps an empty struct when it removes the struct's last field.
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

// isWhole reports whether the type is a map or a list that server-side apply replaces as a whole. No single field or item is removed from
// such a value. So if it is empty, it was sent empty.
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
