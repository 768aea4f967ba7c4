package overlay

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// secondKey describes a list whose items server-side apply identifies by two fields. field is the second one. A strategic merge uses only
// the first one, and would merge an item of a patch into a wrong item.
type secondKey struct {
	field string
	// whenUnset is the value of the second field if an item does not set it. It may be empty. Then an item of the patch
	// without the second field is merged into the first item of the base with the same first field.
	whenUnset string
}

var secondKeys = map[reflect.Type]secondKey{
	reflect.TypeFor[corev1.ContainerPort]():            {"protocol", string(corev1.ProtocolTCP)},
	reflect.TypeFor[corev1.TopologySpreadConstraint](): {"whenUnsatisfiable", ""},
}

// itemKey has both fields of a key. During a merge it replaces the first field in the item.
type itemKey struct{ first, second any }

// keyIn returns the key of an item. If the key of the list has two fields (see secondKeys), it is an [itemKey]. Otherwise it is the value of the
// first field. If the item lacks the first field, keyIn returns nil. If the second field is missing, or Go cannot compare its value, the value
// is secondKey.whenUnset.
func keyIn(item map[string]any, list member) any {
	first := item[list.mergeKey]
	second, isComposite := secondKeys[list.goType.Elem()]
	if _, encoded := first.(itemKey); encoded || !isComposite || first == nil {
		return first
	}
	value := item[second.field]
	if value == nil || value == "" || !isComparable(value) {
		value = second.whenUnset
	}
	return itemKey{first, value}
}

// encodeKeys replaces, in each item of both lists, the first key field by an [itemKey], which has both fields. So a strategic merge, which
// compares only the first field, compares both. decodeKeys restores the first field in the result. If the items are identified by one
// field, encodeKeys does nothing.
func encodeKeys(base, patch []any, list member) {
	if _, isComposite := secondKeys[list.goType.Elem()]; !isComposite {
		return
	}
	firstOf := map[any]itemKey{} // the key of the first item of the base with this first field
	for _, item := range base {
		item, _ := item.(map[string]any)
		if key, ok := keyIn(item, list).(itemKey); ok {
			if item[list.mergeKey] = key; firstOf[key.first] == (itemKey{}) {
				firstOf[key.first] = key
			}
		}
	}
	for _, item := range patch {
		item, _ := item.(map[string]any)
		key, ok := keyIn(item, list).(itemKey)
		if !ok {
			continue
		}
		if known := firstOf[key.first]; key.second == "" && known != (itemKey{}) {
			key = known
		}
		item[list.mergeKey] = key
	}
}

// decodeKeys undoes encodeKeys in the result of a merge.
func decodeKeys(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			if key, encoded := value.(itemKey); encoded {
				tree[name] = key.first
				continue
			}
			decodeKeys(value)
		}
	case []any:
		for _, item := range tree {
			decodeKeys(item)
		}
	}
}

// setOrder sorts the items of a merged list. The items of the base keep their order. A new item of the patch comes before the next item of
// the patch that the base has too. If the patch has no such item, the new item comes last. If the patch contains an order directive, that
// order is used instead.
func setOrder(base, items []any, patch map[string]any, name string, list member) {
	var order []any
	if own, isOwn := patch[orderPrefix+name].([]any); isOwn {
		order = ownOrder(own, slices.Concat(base, items), list)
	} else {
		order = orderOf(base, items, list)
	}
	places := make(map[any]int, len(order))
	entries := make([]any, len(order))
	for i, key := range order {
		places[key] = i + 1
		entries[i] = map[string]any{list.mergeKey: key}
	}
	slices.SortStableFunc(items, func(a, b any) int { return places[orderedKey(a, list)] - places[orderedKey(b, list)] }) // items with a directive come first
	patch[orderPrefix+name] = entries
}

// orderedKey returns the key by which setOrder sorts an item. It returns nil for an item with a directive, such as $patch: delete, and for
// an item without a key.
func orderedKey(item any, list member) any {
	object, _ := item.(map[string]any)
	if object[patchDirective] != nil {
		return nil
	}
	return object[list.mergeKey]
}

// orderOf returns the keys of the base's and the patch's items, in the order that setOrder describes.
func orderOf(base, items []any, list member) (order []any) {
	inBase, before := map[any]bool{}, map[any][]any{} // before has the new items that come before an item of the base
	for _, item := range base {
		inBase[orderedKey(item, list)] = true
	}
	var fresh []any // the new items whose next item of the base was not found yet
	for _, item := range items {
		switch key := orderedKey(item, list); {
		case key == nil:
		case inBase[key]:
			before[key], fresh = append(before[key], fresh...), nil
		default:
			fresh = append(fresh, key)
		}
	}
	for _, item := range base {
		if key := orderedKey(item, list); key != nil && inBase[key] {
			order = append(append(order, before[key]...), key)
			inBase[key] = false // if two items of the base have the key, the first counts
		}
	}
	return append(order, fresh...)
}

// ownOrder returns the keys of items in the order of the patch's directive. If an entry of the directive lacks the second key field, it
// stands for all items with its first field.
func ownOrder(own, items []any, list member) (order []any) {
	second, isComposite := secondKeys[list.goType.Elem()]
	seen := map[any]bool{}
	add := func(key any) {
		if key != nil && !seen[key] {
			seen[key] = true
			order = append(order, key)
		}
	}
	for _, entry := range own {
		object, _ := entry.(map[string]any)
		if !isComposite {
			add(object[list.mergeKey])
			continue
		}
		for _, item := range items {
			key, _ := orderedKey(item, list).(itemKey)
			if key.first == object[list.mergeKey] && (object[second.field] == nil || object[second.field] == key.second) {
				add(any(key))
			}
		}
	}
	return order
}
