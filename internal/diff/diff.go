// Package diff lists where two values as JSON has them differ: maps, lists and scalars. It only finds the
// differences; each package prints them for its own readers.
//
// It asks whether two values are equal. Package internal/compare asks another question, whether a live object
// covers a wanted one, and answers it by the API's schema, so it has a walk of its own. The two share [Path].
package diff

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Difference is one place where two values differ.
type Difference struct {
	Path          Path
	Before, After any // Absent when there is none; nil is JSON's null
}

// Absent is the value of a field that does not exist.
type Absent struct{}

// Options say how values are walked and how their paths are written. The zero value is valid.
type Options struct {
	// Field returns how a map's key is written in paths. The default is the key itself.
	Field func(key string) string
	// Item returns how an item of a list is written in paths. The default is its index.
	Item func(index int, item any) string
	// ExpandMaps lists each value of a map that only one side has. The default is to list the map as one value.
	// An empty map is always one value.
	ExpandMaps bool
}

// Values returns the differences between two values, in the order of their paths; nil when there are none. Maps
// are map[string]any and lists are []any; everything else is a scalar. Lists of different lengths differ as one
// value. Lists of the same length are compared item by item.
func Values(before, after any, options Options) []Difference {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	w := walk{options: options}
	w.values(nil, before, after)
	return w.found
}

type walk struct {
	options Options
	found   []Difference
}

func (w *walk) values(path Path, before, after any) {
	beforeMap, isMap := w.asMap(before, after)
	afterMap, areMaps := w.asMap(after, before)
	if isMap && areMaps {
		w.maps(path, beforeMap, afterMap)
		return
	}
	beforeList, isList := before.([]any)
	afterList, areLists := after.([]any)
	if isList && areLists && len(beforeList) == len(afterList) {
		for i := range beforeList {
			w.values(path.Item(w.item(i, beforeList[i])), beforeList[i], afterList[i])
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		w.found = append(w.found, Difference{Path: path, Before: before, After: after})
	}
}

func (w *walk) maps(path Path, before, after map[string]any) {
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.values(path.Field(w.field(key)), valueOf(before, key), valueOf(after, key))
	}
}

// asMap returns v as a map. Where maps are expanded, Absent is an empty map if the other side has a map with values.
func (w *walk) asMap(v, other any) (map[string]any, bool) {
	if _, absent := v.(Absent); absent && w.options.ExpandMaps {
		m, _ := other.(map[string]any)
		return nil, len(m) > 0
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func (w *walk) field(key string) string {
	if w.options.Field == nil {
		return key
	}
	return w.options.Field(key)
}

func (w *walk) item(index int, item any) string {
	if w.options.Item == nil {
		return strconv.Itoa(index)
	}
	return w.options.Item(index, item)
}

func valueOf(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return Absent{}
}
