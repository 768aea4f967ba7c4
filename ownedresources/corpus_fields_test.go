package ownedresources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// path leads to a value in decoded JSON: names of fields and indices of items.
type path []any

func (p path) String() string {
	var s strings.Builder
	for _, step := range p {
		fmt.Fprintf(&s, "/%v", step)
	}
	return s.String()
}

// pointer is the path as RFC 6901 has it.
func (p path) pointer() string {
	var s strings.Builder
	for _, step := range p {
		s.WriteByte('/')
		s.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return s.String()
}

func (p path) with(step any) path { return append(slices.Clip(p), step) }

func (p path) in(v any) (any, bool) {
	for _, step := range p {
		switch at := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			next, ok := m[at]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			list, _ := v.([]any)
			if at >= len(list) {
				return nil, false
			}
			v = list[at]
		}
	}
	return v, true
}

// field is the name of the innermost field on the path.
func (p path) field() string {
	for _, step := range slices.Backward(p) {
		if name, ok := step.(string); ok {
			return name
		}
	}
	return ""
}

// lists are the paths of the lists on the way, innermost first.
func (p path) lists() []path {
	var lists []path
	for i, step := range slices.Backward(p) {
		if _, item := step.(int); item {
			lists = append(lists, p[:i])
		}
	}
	return lists
}

// withoutPath gives a copy of v without what is at p.
func withoutPath(v any, p path) any {
	if len(p) == 1 {
		switch v := v.(type) {
		case map[string]any:
			v = maps.Clone(v)
			delete(v, p[0].(string))
			return v
		case []any:
			return slices.Delete(slices.Clone(v), p[0].(int), p[0].(int)+1)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		v[p[0].(string)] = withoutPath(v[p[0].(string)], p[1:])
		return v
	case []any:
		v = slices.Clone(v)
		v[p[0].(int)] = withoutPath(v[p[0].(int)], p[1:])
		return v
	}
	return v
}

// fieldsOf gives the paths of all that an object says of itself: values, and the structs, maps
// and lists around them. Its name is not among them.
func fieldsOf(object map[string]any) []path {
	var found []path
	var walk func(v any, at path)
	walk = func(v any, at path) {
		switch at.String() {
		case "/apiVersion", "/kind", "/metadata/name", "/metadata/namespace":
			return
		case "", "/metadata", "/spec":
		default:
			found = append(found, at)
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k], at.with(k))
			}
		case []any:
			for i, item := range v {
				walk(item, at.with(i))
			}
		}
	}
	walk(object, nil)
	return found
}

// isLeaf tells a value from what is around values.
func isLeaf(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return true
}

// bisect tries all paths together; those that cannot be tried together, in halves.
func bisect(paths []path, try func([]path) bool) {
	if len(paths) > 0 && !try(paths) && len(paths) > 1 {
		bisect(paths[:len(paths)/2], try)
		bisect(paths[len(paths)/2:], try)
	}
}
