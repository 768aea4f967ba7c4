package applyschema

import (
	"maps"
	"slices"

	"github.com/opblocks/opblocks/internal/diff"
)

// Duplicate returns the path of a list item that has the same keys as an earlier item, or of a value that is twice in a set. Server-side
// apply refuses an object with such a duplicate. The path is written as in messages of the API server. Without a duplicate it is empty.
func (r Schema) Duplicate(tree any) string { return r.duplicate(nil, tree).String() }

func (r Schema) duplicate(at diff.Path, tree any) diff.Path {
	switch value := tree.(type) {
	case map[string]any:
		if r.IsAtomicMap() {
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(value)) {
			below := at.Field(k)
			if r.IsMap() && !r.HasFields() {
				below = at.Item(k)
			}
			if found := r.Child(k).duplicate(below, value[k]); found != nil {
				return found
			}
		}
	case []any:
		return duplicateItem(r, at, value)
	}
	return nil
}

func duplicateItem(r Schema, at diff.Path, list []any) diff.Path {
	if !r.IsAssociative() {
		return nil
	}
	find := r.finder(list)
	for i, item := range list {
		name := r.ItemName(item, true)
		if len(r.Keys()) == 0 {
			name = ScalarText(item)
		}
		if first := find(item); first >= 0 && first < i {
			return at.Item(name)
		}
		if found := r.Element().duplicate(at.Item(name), item); found != nil {
			return found
		}
	}
	return nil
}

// Keyless returns the paths of the list items that have no key, although their list identifies items by keys. The API server may store such
// an item, and then refuses every server-side apply of the object.
func (r Schema) Keyless(tree any) [][]Step { return r.keyless(nil, tree) }

func (r Schema) keyless(at []Step, tree any) (found [][]Step) {
	switch value := tree.(type) {
	case map[string]any:
		if r.IsAtomicMap() {
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(value)) {
			found = append(found, r.Child(k).keyless(append(slices.Clip(at), k), value[k])...)
		}
	case []any:
		if !r.IsAssociative() {
			return nil
		}
		for i, item := range value {
			path := append(slices.Clip(at), i)
			if r.isKeyless(item) {
				found = append(found, path)
			} else {
				found = append(found, r.Element().keyless(path, item)...)
			}
		}
	}
	return found
}

func (r Schema) isKeyless(item any) bool {
	fields, isMap := item.(map[string]any)
	if keys := r.Keys(); len(keys) > 0 {
		return !isMap || !slices.ContainsFunc(keys, func(k string) bool {
			_, set := fields[k]
			return set || r.Element().KeyOr(nil, k) != nil
		})
	}
	_, isList := item.([]any) // an item of a set is identified by its value, which must be a scalar
	return item == nil || isMap || isList
}
