package overlay

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// compositeKey is the second field of the key of a list whose items server-side apply tells apart by two fields. A strategic merge knows only the
// first one, and would merge an item of a patch into another item.
type compositeKey struct {
	field string
	// whenUnset is the value of a field that is not set. If it is empty, an item of a patch without the field is the first item of the base
	// that has the same value in the first field.
	whenUnset string
}

var compositeKeys = map[reflect.Type]compositeKey{
	reflect.TypeFor[corev1.ContainerPort]():            {"protocol", string(corev1.ProtocolTCP)},
	reflect.TypeFor[corev1.TopologySpreadConstraint](): {"whenUnsatisfiable", ""},
}

// keySeparator is in no value of a key.
const keySeparator = "\x00"

// encodeKeys puts both fields of the key into the first one, so that a strategic merge tells the items apart. decodeKeys takes them apart again.
func encodeKeys(base, patch []any, list member) {
	second, composite := compositeKeys[list.goType.Elem()]
	if !composite {
		return
	}
	encode := func(item map[string]any, value any) {
		item[list.mergeKey] = fmt.Sprint(item[list.mergeKey], keySeparator, value)
	}
	var keys []string // the encoded keys of the base
	for _, item := range base {
		if item, ok := item.(map[string]any); ok && item[list.mergeKey] != nil {
			encode(item, valueOr(item[second.field], second.whenUnset))
			keys = append(keys, item[list.mergeKey].(string))
		}
	}
	for _, item := range patch {
		item, ok := item.(map[string]any)
		if !ok || item[list.mergeKey] == nil {
			continue
		}
		value := valueOr(item[second.field], second.whenUnset)
		if value == "" {
			first := fmt.Sprint(item[list.mergeKey], keySeparator)
			if i := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, first) }); i >= 0 {
				value = strings.TrimPrefix(keys[i], first)
			}
		}
		encode(item, value)
	}
}

func valueOr(value any, whenUnset string) any {
	if value == nil {
		return whenUnset
	}
	return value
}

// decodeKeys undoes encodeKeys in the result of a merge.
func decodeKeys(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			text, isText := value.(string)
			first, _, encoded := strings.Cut(text, keySeparator)
			switch {
			case !isText || !encoded:
				decodeKeys(value)
			case name == "containerPort":
				number, err := strconv.ParseFloat(first, 64)
				if err != nil {
					continue
				}
				tree[name] = int64(number)
			default:
				tree[name] = first
			}
		}
	case []any:
		for _, item := range tree {
			decodeKeys(item)
		}
	}
}

// setOrder orders a list that is merged: the items of the base keep their places, and a new item of the patch comes before the next item of the
// base that the patch names, or else last. An order of the patch's own wins.
func setOrder(base, items []any, patch map[string]any, name string, list member) {
	keyOf := func(item any) any {
		object, _ := item.(map[string]any)
		if object[patchDirective] != nil {
			return nil
		}
		return object[list.mergeKey]
	}
	if order, own := patch[orderPrefix+name].([]any); own {
		patch[orderPrefix+name] = encodeOrder(order, slices.Concat(base, items), list)
		return
	}
	var order []any
	for _, item := range base {
		if key := keyOf(item); key != nil && !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	var fresh []any // the new items that have no next item of the base yet
	for _, item := range items {
		key := keyOf(item)
		if key == nil {
			continue
		}
		if i := slices.Index(order, key); i >= 0 {
			order, fresh = slices.Insert(order, i, fresh...), nil
		} else {
			fresh = append(fresh, key)
		}
	}
	order = append(order, fresh...)
	place := func(item any) int { return slices.Index(order, keyOf(item)) } // a directive comes first
	slices.SortStableFunc(items, func(a, b any) int { return place(a) - place(b) })
	entries := make([]any, len(order))
	for i, key := range order {
		entries[i] = map[string]any{list.mergeKey: key}
	}
	patch[orderPrefix+name] = entries
}

// encodeOrder returns an order of the patch's own for items whose keys were encoded. An entry stands for all items that have its first field.
func encodeOrder(order, items []any, list member) (encoded []any) {
	if _, composite := compositeKeys[list.goType.Elem()]; !composite {
		return order
	}
	for _, entry := range order {
		object, _ := entry.(map[string]any)
		first := fmt.Sprint(object[list.mergeKey], keySeparator)
		var keys []any
		for _, item := range items {
			object, _ := item.(map[string]any)
			key, _ := object[list.mergeKey].(string)
			if strings.HasPrefix(key, first) && object[patchDirective] == nil && !slices.Contains(keys, any(key)) {
				keys = append(keys, key)
				encoded = append(encoded, map[string]any{list.mergeKey: key})
			}
		}
	}
	return encoded
}
