// Package diff lists the differences between two JSON values: maps, lists and scalars. It only finds the differences. Each package that
// uses it prints them for its own readers.
//
// Package diff compares whether two values are equal. Package internal/compare compares something else: whether a live object has
// everything that is wanted, by the API's schema. So it has its own code. The two packages share [Path].
package diff

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Difference is one path at which two values differ.
type Difference struct {
	Path          Path
	Before, After any // Absent if the value does not exist; nil is JSON's null
}

// Absent is the value of a field that does not exist.
type Absent struct{}

// Options say how values are compared and how paths are written. The zero value is valid.
type Options struct {
	// Field returns how the key of a map is written in paths. The default is the key itself.
	Field func(key string) string
	// Item returns how a list item is written in paths. The default is the item's index.
	Item func(index int, item any) string
	// Key returns the key of an item. If the item has no key, found is false. If the items of both lists have keys, and no two items of a list
	// have the same key, items are compared with the item of the same key, and paths have the keys. An item that only one list has is one
	// difference. The default is to compare items of the same index. See [Values].
	Key func(item any) (key string, found bool)
	// ExpandMaps lists each value of a map that only one side has. The default is to list such a map as one value. An empty map is always one
	// value.
	ExpandMaps bool
}

// Values returns the differences between two values, in the order of their paths. If there are none, it returns nil. Maps are
// map[string]any, and lists are []any. Everything else is a scalar.
//
// Lists are compared item by item if they have the same length, or if their items have keys (see Options.Key). Other lists differ as one
// value. Lists with keys also differ as one value if the items that both have are in another order.
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

// keyedLists compares two lists by the keys of their items. If an item has no key, or a key is twice in a list, it returns false.
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

// keys returns the keys of a list's items in order, and the items by key. If an item has no key, or a key occurs twice, the map has fewer
// items than the list.
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

// commonKeys returns the keys that also occur in items.
func commonKeys(keys []string, items map[string]any) (common []string) {
	for _, key := range keys {
		if _, found := items[key]; found {
			common = append(common, key)
		}
	}
	return common
}

// asMap returns v as a map. If ExpandMaps is set, v is Absent and other is a map with values, it returns an empty map.
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
