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

// isReplaceMarker reports whether an item of a list says that the list replaces the list of the base.
func isReplaceMarker(item any) bool {
	m, ok := item.(map[string]any)
	return ok && m[patchDirective] == replace
}

// directive checks a directive, which is a member of an object of the type t.
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

// retainKeys checks that the directive names the members that are kept, among them all that the patch sets.
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

// order checks an order of list items: it has their keys only, and the items of the patch in the same order.
func (c *checker) order(path *field.Path, value, items any, list member) {
	order, ok := value.([]any)
	if !ok {
		c.add(invalidValue(path, "must be a list with the keys of the items"))
		return
	}
	before := c.found
	var keys []any
	for i, item := range order {
		switch object, isObject := item.(map[string]any); {
		case list.mergeKey == "":
			c.value(path.Index(i), orList(item), member{goType: withoutPointer(list.goType.Elem())}, true)
			keys = append(keys, item)
		case !isObject || len(object) != 1 || object[list.mergeKey] == nil:
			c.add(invalidValue(path.Index(i), "must have the field "+list.mergeKey+" and no other"))
		default:
			c.object(path.Index(i), object, list.goType.Elem(), true)
			keys = append(keys, object[list.mergeKey])
		}
	}
	if c.found > before {
		return
	}
	for i, key := range keys {
		if slices.Contains(keys[:i], key) {
			c.add(invalidValue(path.Index(i), "stands twice: an order has each item once"))
			return
		}
	}
	patched, _ := items.([]any)
	for i, item := range patched {
		key := item
		if object, isObject := item.(map[string]any); isObject {
			if object[patchDirective] != nil {
				continue
			}
			key = object[list.mergeKey]
		}
		place := slices.IndexFunc(keys, func(k any) bool { return isComparable(key) && k == key })
		if place < 0 {
			c.add(invalidValue(path, fmt.Sprintf("must contain the items of the patch in the same order: item %d is missing or comes earlier", i)))
			return
		}
		keys = keys[place+1:]
	}
}

// isComparable reports whether a value of JSON can be compared.
func isComparable(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// orList returns the value, or an empty object for null: the check refuses an empty object as a scalar or as a list.
func orList(value any) any {
	if value == nil {
		return map[string]any{}
	}
	return value
}
