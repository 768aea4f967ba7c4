package overlay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The directives of a strategic merge patch,
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md.
const (
	directivePrefix     = "$"
	patchDirective      = "$patch"
	replace             = "replace"
	remove              = "delete"
	retainKeys          = "$retainKeys"
	orderPrefix         = "$setElementOrder/"
	removeFromPrimitive = "$deleteFromPrimitiveList/"
)

// isReplaceMarker reports whether an item is the directive $patch: replace, which says that the patch's list replaces
// the base's list.
func isReplaceMarker(item any) bool {
	m, ok := item.(map[string]any)
	return ok && m[patchDirective] == replace
}

// directive checks a directive. name is its name, object is the object that contains it, and t is the Go type of the
// object.
func (c *checker) directive(path *field.Path, name string, object map[string]any, t reflect.Type) {
	value := object[name]
	if name == patchDirective {
		if value != replace && value != remove {
			c.add(invalidValue(path, "must be replace or delete"))
		}
		return
	}
	if name == retainKeys {
		c.retainKeys(path, value, object, t)
		return
	}
	prefix, listName, _ := strings.Cut(name, "/")
	list, found := memberOf(t, listName)
	isList := found && t.Kind() == reflect.Struct && list.goType.Kind() == reflect.Slice && !isScalar(list.goType)
	switch prefix + "/" {
	case orderPrefix:
		if !isList || !list.merges {
			c.add(field.Forbidden(path, "orders only lists that are merged: "+listName+" is none"))
			return
		}
		c.order(path, value, object[listName], list)
	case removeFromPrimitive:
		if !isList || !isScalar(withoutPointer(list.goType.Elem())) {
			c.add(field.Forbidden(path, "removes only from lists of plain values: "+listName+" is none"))
			return
		}
		if _, both := object[listName]; both {
			c.add(field.Forbidden(path, "must not stand beside "+listName+", since the API server takes the two in no fixed order: use one"))
		}
		c.value(path, orList(value), member{goType: list.goType}, true)
	default:
		c.add(field.Forbidden(path, "is not a directive of a strategic merge patch"))
	}
}

// retainKeys checks a list of the fields that are kept. It must name fields that exist, and all fields that the patch
// sets.
func (c *checker) retainKeys(path *field.Path, value any, object map[string]any, t reflect.Type) {
	listed, ok := value.([]any)
	if !ok {
		c.add(invalidValue(path, "must be a list of names of fields"))
		return
	}
	names := map[string]bool{}
	for i, item := range listed {
		name, ok := item.(string)
		if _, found := memberOf(t, name); !ok || !found {
			c.add(invalidValue(path.Index(i), "must be the name of a field beside it"))
			return
		}
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if object[name] != nil && !strings.HasPrefix(name, directivePrefix) && !names[name] {
			c.add(field.Required(path, "must name all fields that the patch sets beside it, also "+shorten(name)))
		}
	}
}

// order checks a directive that sets the order of a list's items. Each entry has the key fields of one item and no other fields. If the
// items have no keys, the entry is the item itself. All items of the list in the patch must occur in the directive, in the same order.
func (c *checker) order(path *field.Path, value, items any, list member) {
	order, ok := value.([]any)
	if !ok {
		c.add(invalidValue(path, "must be a list with the keys of the items"))
		return
	}
	before := c.found
	keys := make([]itemKey, len(order))
	for i, entry := range order {
		keys[i] = c.orderEntry(path.Index(i), entry, list)
	}
	if c.found > before {
		return
	}
	for i, key := range keys {
		if slices.ContainsFunc(keys[:i], key.meets) {
			c.add(invalidValue(path.Index(i), "stands twice: an order has each item once"))
			return
		}
	}
	patched, _ := items.([]any)
	if i := notInOrder(patched, keys, list); i >= 0 {
		c.add(invalidValue(path, fmt.Sprintf("must contain the items of the patch in the same order: item %d is missing or comes earlier", i)))
	}
}

// orderEntry checks one entry of a directive that sets the order of a list's items, and returns the key of the item.
func (c *checker) orderEntry(path *field.Path, entry any, list member) itemKey {
	if list.mergeKey == "" {
		c.value(path, orList(entry), member{goType: withoutPointer(list.goType.Elem())}, true)
		return itemKey{first: entry}
	}
	second := secondKeys[list.goType.Elem()].field // empty if the key is one field
	object, isObject := entry.(map[string]any)
	if !isObject || object[list.mergeKey] == nil || !hasOnly(object, list.mergeKey, second) {
		fields := list.mergeKey
		if second != "" {
			fields += ", or the fields " + fields + " and " + second + ","
		}
		c.add(invalidValue(path, "must have the field "+fields+" and no other"))
		return itemKey{}
	}
	c.object(path, object, list.goType.Elem(), true)
	return itemKey{object[list.mergeKey], object[second]}
}

// notInOrder returns the index of the first item that has no key in keys, or whose key comes too early there. If all
// items are in order, it returns -1.
func notInOrder(items []any, keys []itemKey, list member) int {
	for i, item := range items {
		key := itemKey{first: item}
		if object, isObject := item.(map[string]any); isObject {
			if object[patchDirective] != nil {
				continue
			}
			if both, isComposite := keyIn(object, list).(itemKey); isComposite {
				key = both
			} else {
				key.first = object[list.mergeKey]
			}
		}
		place := slices.IndexFunc(keys, func(k itemKey) bool { return isComparable(key.first) && k.meets(key) })
		if place < 0 {
			return i
		}
		if keys = keys[place:]; keys[0] == key || key.second == nil { // otherwise the entry may also be for the next item
			keys = keys[1:]
		}
	}
	return -1
}

// meets reports whether two keys may belong to the same item. If the second field of a key is not set, it equals any
// value.
func (k itemKey) meets(other itemKey) bool {
	isUnset := func(second any) bool { return second == nil || second == "" }
	return k.first == other.first && (isUnset(k.second) || isUnset(other.second) || k.second == other.second)
}

// hasOnly reports whether an object has no other fields than these.
func hasOnly(object map[string]any, names ...string) bool {
	for name := range object {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// isComparable reports whether Go can compare the JSON value with ==. Objects and lists cannot be compared.
func isComparable(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// orList returns the value, or an empty object if the value is null. The checks ignore a null, but refuse an empty
// object where a scalar or a list is expected.
func orList(value any) any {
	if value == nil {
		return map[string]any{}
	}
	return value
}
