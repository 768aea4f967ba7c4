// Package diff lists the differences between two JSON values: maps, lists and scalars. It only finds the differences; each
// package prints them for its own readers.
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
	// Key returns the key of an item, and false if it has none. If all items of two lists have keys that differ within
	// their list, items are matched by their keys, and paths have the key: an item that only one list has is one
	// difference. The default is to match items by their index. See [Values].
	Key func(item any) (key string, found bool)
	// ExpandMaps lists each value of a map that only one side has. The default is to list the map as one value.
	// An empty map is always one value.
	ExpandMaps bool
}

// Values returns the differences between two values, in the order of their paths; nil when there are none. Maps are
// map[string]any and lists are []any; everything else is a scalar. Lists of different lengths differ as one value. Lists of
// the same length are compared item by item. Lists whose items have keys are compared item by item, also if their lengths
// differ. But if the items that both lists have are in another order, the lists differ as one value.
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
	if isList && areLists && w.keyedLists(path, beforeList, afterList) {
		return
	}
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

// keyedLists compares two lists by the keys of their items. It reports false if not all items have a key of their own.
func (w *walk) keyedLists(path Path, before, after []any) bool {
	if w.options.Key == nil {
		return false
	}
	beforeKeys, beforeItems := w.keys(before)
	afterKeys, afterItems := w.keys(after)
	if len(beforeItems) < len(before) || len(afterItems) < len(after) {
		return false
	}
	if !slices.Equal(commonKeys(beforeKeys, afterItems), commonKeys(afterKeys, beforeItems)) {
		w.found = append(w.found, Difference{Path: path, Before: before, After: after})
		return true
	}
	for _, key := range beforeKeys {
		if other, found := afterItems[key]; found {
			w.values(path.Item(key), beforeItems[key], other)
		} else {
			w.found = append(w.found, Difference{Path: path.Item(key), Before: beforeItems[key], After: Absent{}})
		}
	}
	for _, key := range afterKeys {
		if _, found := beforeItems[key]; !found {
			w.found = append(w.found, Difference{Path: path.Item(key), Before: Absent{}, After: afterItems[key]})
		}
	}
	return true
}

// keys returns the keys of a list's items in their order, and the items by key. The map has fewer items than the list if not
// all have a key of their own.
func (w *walk) keys(list []any) (keys []string, items map[string]any) {
	items = make(map[string]any, len(list))
	for _, item := range list {
		if key, found := w.options.Key(item); found {
			keys = append(keys, key)
			items[key] = item
		}
	}
	return keys, items
}

// commonKeys returns the keys that items has too.
func commonKeys(keys []string, items map[string]any) (common []string) {
	for _, key := range keys {
		if _, found := items[key]; found {
			common = append(common, key)
		}
	}
	return common
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
