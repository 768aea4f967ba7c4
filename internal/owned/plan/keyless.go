package plan

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
)

// The API server refuses every apply of an object that has a list item without the key of its list, such as a secret without a name in a
// ServiceAccount. Anybody can write such an item, and it makes the API server drop all managed fields.
//
// The operator writes such an object by a patch, which sets what an apply would have made of the object. Without managed fields, nobody
// knows which of the other fields are ours. So fields that are not desired are removed: see package write. Items without keys stay.

// IsLiveUntypable reports whether the API server refused an apply because the live object does not fit its schema.
func IsLiveUntypable(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "failed to create typed live object") ||
		strings.Contains(text, "failed to create manager for existing fields") // without managed fields
}

// PutBack appends the items of a live tree at these paths to the same lists of another tree. It returns false if such a list is inside of
// an item of another list, or if the tree lacks the map that the list belongs to.
func PutBack(tree, live map[string]any, items [][]applyschema.Step) bool {
	for _, path := range items {
		holder, isMap := applyschema.At(tree, path[:len(path)-2]).(map[string]any)
		name, isField := path[len(path)-2].(string)
		if !isMap || !isField || slices.ContainsFunc(path[:len(path)-1], func(step applyschema.Step) bool { _, isItem := step.(int); return isItem }) {
			return false
		}
		list, _ := holder[name].([]any)
		holder[name] = append(slices.Clip(list), applyschema.At(live, path))
	}
	return true
}

// WithoutUndesired returns a tree without the fields that are not desired. Fields that certainly belong to others stay.
func WithoutUndesired(d *owned.Desired, tree, want map[string]any, withSpec bool) (map[string]any, error) {
	var sets [2]*fieldpath.Set
	for i, object := range []map[string]any{tree, want} {
		value, err := d.Kind.Comparer.Schema().Type().FromUnstructured(object, typed.AllowDuplicates)
		if err == nil {
			sets[i], err = value.ToFieldSet()
		}
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	removed, err := Removable(d, sets[0].Difference(sets[1]), sets[1], withSpec)
	if err != nil {
		return nil, err
	}
	return Without(d, tree, removed)
}
