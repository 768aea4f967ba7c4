package applyschema

import (
	"slices"
	"strconv"
	"strings"
)

// Step is one step of a path in a tree (decoded JSON): a string for a field or the key of a map, an int for the index of a list item.
type Step any

// below returns the value to which a step leads from a tree, or nil.
func below(tree any, step Step) any {
	switch step := step.(type) {
	case string:
		m, _ := tree.(map[string]any)
		return m[step]
	case int:
		if items, _ := tree.([]any); step < len(items) {
			return items[step]
		}
	}
	return nil
}

// At returns the value at a path in a tree, or nil.
func At(tree any, path []Step) any {
	for _, step := range path {
		tree = below(tree, step)
	}
	return tree
}

// Without returns a copy of a tree without the values at these paths.
func Without(tree any, paths [][]Step) any { return without(tree, nil, pathSet(paths)) }

func without(tree any, at []Step, removed map[string]bool) any {
	switch tree := tree.(type) {
	case map[string]any:
		kept := make(map[string]any, len(tree))
		for k, v := range tree {
			if path := append(slices.Clip(at), k); !removed[pathKey(path)] {
				kept[k] = without(v, path, removed)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(tree))
		for i, v := range tree {
			if path := append(slices.Clip(at), i); !removed[pathKey(path)] {
				kept = append(kept, without(v, path, removed))
			}
		}
		return kept
	}
	return tree
}

// PathBefore takes a path in the result of [Without], and returns the path of the same value in the original tree. The indices in it also
// count the items that were removed.
func PathBefore(tree any, removed [][]Step, path []Step) []Step {
	set := pathSet(removed)
	before := make([]Step, 0, len(path))
	for _, step := range path {
		index, isItem := step.(int)
		if !isItem {
			before = append(before, step)
			continue
		}
		items, _ := At(tree, before).([]any)
		for i := range items {
			if set[pathKey(append(slices.Clip(before), i))] {
				index++
			} else if i >= index {
				break
			}
		}
		before = append(before, index)
	}
	return before
}

func pathSet(paths [][]Step) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, path := range paths {
		set[pathKey(path)] = true
	}
	return set
}

func pathKey(path []Step) string {
	var key strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case string:
			key.WriteString("/" + strconv.Quote(step))
		case int:
			key.WriteString("/" + strconv.Itoa(step))
		}
	}
	return key.String()
}
