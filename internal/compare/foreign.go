package compare

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Schema is how server-side apply merges the objects of one kind. Its methods work on trees: objects as decoded JSON.
type Schema struct{ root typeRef }

// Step is one step of a path in a tree: a string for a field or a key of a map, an int for the index of an item.
type Step any

// Type returns the type that package typed of structured-merge-diff parses and merges.
func (s Schema) Type() typed.ParseableType {
	return typed.ParseableType{Schema: s.root.schema, TypeRef: smdschema.TypeRef{Inlined: s.root.atom}}
}

// child returns the type below a step.
func (r typeRef) child(step Step) typeRef {
	name, isName := step.(string)
	if isName && r.atom.Map != nil && len(r.atom.Fields) > 0 {
		f, _ := r.field(name)
		return f
	}
	return r.element()
}

// isAtomic reports whether a value of the type belongs to one writer as a whole. A list without a schema does.
func (r typeRef) isAtomic(value any) bool {
	_, isList := value.([]any)
	return r.isAtomicMap() || isList && !r.isAssociative()
}

// Duplicate returns the path of a list item whose keys another item of that list has too, as in messages of the API
// server, or of a value that is in a set twice. It returns an empty path if there is none. Server-side apply refuses
// such an object.
func (s Schema) Duplicate(tree any) string {
	var r recorder
	return s.root.duplicate(&r, tree)
}

func (r typeRef) duplicate(at *recorder, tree any) string {
	switch value := tree.(type) {
	case map[string]any:
		if r.isAtomicMap() {
			return ""
		}
		for _, k := range sortedKeys(value) {
			if r.atom.Map != nil && len(r.atom.Fields) == 0 {
				at.enterMapKey(k)
			} else {
				at.enterField(k)
			}
			found := r.child(k).duplicate(at, value[k])
			at.leave()
			if found != "" {
				return found
			}
		}
	case []any:
		if !r.isAssociative() {
			return ""
		}
		keys, elem := r.atom.List.Keys, r.element()
		for i, item := range value {
			if len(keys) > 0 {
				at.enterKeys(elem, keys, item, true)
			} else {
				at.path = at.path.Item(scalarText(item))
			}
			found := ""
			if elem.find(keys, item, value[:i]) >= 0 {
				found = at.path.String()
			} else if len(keys) > 0 {
				found = elem.duplicate(at, item)
			}
			at.leave()
			if found != "" {
				return found
			}
		}
	}
	return ""
}

// Foreign returns the paths of what have contains and want does not, at and below a path of have.
//
// If the path leads into something that want does not contain, Foreign returns one path: that of the innermost item of a
// list with keys which the path leads through, or else that of the uppermost part. Otherwise it returns the fields below the path, not
// those in lists, or the items of the list at the path.
func (s Schema) Foreign(want, have any, at []Step) [][]Step {
	ref, foreignFrom, innermost := s.root, -1, -1
	for i, step := range at {
		if foreignFrom < 0 {
			if ref.isAtomic(have) {
				return nil
			}
			if want = ref.counterpart(want, have, step); want == nil {
				foreignFrom = i
			}
		}
		if _, isItem := step.(int); isItem && foreignFrom >= 0 && ref.isAssociative() {
			innermost = i
		}
		have = below(have, step)
		if have == nil && foreignFrom == i {
			return nil // it is in neither
		}
		ref = ref.child(step)
	}
	if foreignFrom < 0 {
		return ref.foreignBelow(want, have, slices.Clip(at))
	}
	return [][]Step{at[:max(foreignFrom, innermost)+1]}
}

func (r typeRef) foreignBelow(want, have any, at []Step) (found [][]Step) {
	if r.isAtomic(have) {
		return nil
	}
	switch have := have.(type) {
	case map[string]any:
		for _, k := range sortedKeys(have) {
			w := r.counterpart(want, have, k)
			if w == nil {
				found = append(found, append(at, k))
			} else if _, isMap := have[k].(map[string]any); isMap {
				found = append(found, r.child(k).foreignBelow(w, have[k], slices.Clip(append(at, k)))...)
			}
		}
	case []any:
		for i := range have {
			if r.counterpart(want, have, i) == nil {
				found = append(found, append(at, i))
			}
		}
	}
	return found
}

// counterpart returns what want has where have has the value of a step, or nil.
func (r typeRef) counterpart(want, have any, step Step) any {
	if _, isItem := step.(int); !isItem {
		return below(want, step)
	}
	items, _ := want.([]any)
	live := below(have, step)
	if live == nil || !r.isAssociative() {
		return nil
	}
	if at := r.element().find(r.atom.List.Keys, live, items); at >= 0 {
		return items[at]
	}
	return nil
}

// find returns the index of the item in a list of trees that has the same keys, or -1.
func (r typeRef) find(keys []string, item any, in []any) int {
	c := comparison{plain: true}
	return c.find(r, keys, item, reflect.ValueOf(in), 0)
}

// below returns the value of a step in a tree, or nil.
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

// At returns the value at a path of a tree, or nil.
func At(tree any, path []Step) any {
	for _, step := range path {
		tree = below(tree, step)
	}
	return tree
}

// FillEmpty puts the empty maps and lists of want in the place of nulls in have. A server-side apply leaves null where
// the last field of a struct is dropped, although the empty struct is sent.
func (s Schema) FillEmpty(want, have any) { s.root.fillEmpty(want, have) }

func (r typeRef) fillEmpty(want, have any) {
	switch have := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for k, v := range w {
			switch v := v.(type) {
			case map[string]any:
				if have[k] == nil {
					have[k] = map[string]any{}
				}
				r.child(k).fillEmpty(v, have[k])
			case []any:
				if have[k] == nil {
					have[k] = []any{}
				}
				r.child(k).fillEmpty(v, have[k])
			}
		}
	case []any:
		if !r.isAssociative() {
			return
		}
		for i := range have {
			if w := r.counterpart(want, have, i); w != nil {
				r.element().fillEmpty(w, have[i])
			}
		}
	}
}

// Without returns a copy of a tree without what is at these paths.
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

// PathBefore returns the path that a path of [Without]'s result had in the tree before: an index counts the items that
// were removed.
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
