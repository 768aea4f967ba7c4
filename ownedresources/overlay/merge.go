package overlay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// merge returns the pod template with a valid patch merged into it. It changes the patch, but not base.
func merge(base *corev1.PodTemplateSpec, patch map[string]any) (*corev1.PodTemplateSpec, error) {
	converter := runtime.DefaultUnstructuredConverter
	original, err := converter.ToUnstructured(base)
	if err != nil {
		return nil, fmt.Errorf("convert the pod template: %w", err)
	}
	prepare(original, patch, podTemplateType)
	result, err := strategicpatch.StrategicMergeMapPatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, fmt.Errorf("merge into the pod template: %w", err)
	}
	decodeKeys(map[string]any(result))
	merged := &corev1.PodTemplateSpec{}
	if err := converter.FromUnstructuredWithValidation(result, merged, true); err != nil {
		return nil, fmt.Errorf("convert the merged pod template: %w", err)
	}
	return merged, nil
}

// prepare carries out, in place, the parts of the patch for which base has no object or list to merge into. The API server's library copies
// most of these parts into the result without looking inside: directives would become unknown fields, a null in a map would become an empty
// value, and an object with $patch: replace would be lost.
func prepare(base, patch map[string]any, t reflect.Type) {
	switch patch[patchDirective] {
	case replace:
		delete(patch, patchDirective)
		settle(patch)
		patch[patchDirective] = replace
		return
	case remove:
		return
	}
	replaceOthers(base, patch, t)
	for name, value := range maps.Clone(patch) { // patch changes in the loop: prepareList adds orders
		if strings.HasPrefix(name, directivePrefix) {
			list, isOrder := strings.CutPrefix(name, orderPrefix)
			if live, _ := base[list].([]any); isOrder && len(live) == 0 {
				delete(patch, name) // the order is only for the patch's own items, which have this order
			}
			continue
		}
		m, _ := memberOf(t, name)
		switch value := value.(type) {
		case map[string]any:
			if live, ok := base[name].(map[string]any); ok {
				prepare(live, value, m.goType)
				continue
			}
		case []any:
			if live, ok := base[name].([]any); ok && m.mergeKey != "" {
				prepareList(live, value, patch, name, m)
				continue
			}
		}
		if settled, keep := settleValue(value); keep {
			patch[name] = settled
		} else {
			delete(patch, name)
		}
	}
}

// prepareList prepares a list whose items are merged one by one. items is the list of this name in the patch.
func prepareList(base, items []any, patch map[string]any, name string, list member) {
	if slices.ContainsFunc(items, isReplaceMarker) {
		prepareItems(base, items, list)
		return
	}
	encodeKeys(base, items, list)
	prepareItems(base, items, list)
	setOrder(base, items, patch, name, list)
}

// prepareItems prepares the items of a list that are merged one by one. base and patch are the two lists of items.
func prepareItems(base, patch []any, list member) {
	live := map[any]map[string]any{}
	for _, item := range base {
		if item, ok := item.(map[string]any); ok && live[item[list.mergeKey]] == nil {
			live[item[list.mergeKey]] = item // if several items have the key, the API server's library merges into the first
		}
	}
	for _, item := range patch {
		switch item := item.(map[string]any); item[patchDirective] {
		case replace:
			clear(live)
		case remove:
			delete(live, item[list.mergeKey])
		}
	}
	for _, item := range patch {
		item := item.(map[string]any)
		switch counterpart := live[item[list.mergeKey]]; {
		case item[patchDirective] != nil:
		case counterpart != nil:
			prepare(counterpart, item, list.goType.Elem())
		default:
			settle(item)
		}
	}
}

// settle changes, in place, an object of the patch that is not merged into an object of base: base has no such object, or the patch
// replaces it. settle removes nulls, directives, and the values that the directives delete. What is left goes into the result as it is.
func settle(patch map[string]any) {
	for name, value := range patch {
		settled, keep := settleValue(value)
		if !keep || settled == nil || strings.HasPrefix(name, directivePrefix) {
			delete(patch, name)
			continue
		}
		patch[name] = settled
	}
}

// settleValue returns a value of the patch after settle has changed all objects inside of it. If the value is a list, it also drops the
// items that directives delete. keep is false if a directive deletes the value itself.
func settleValue(value any) (settled any, keep bool) {
	switch value := value.(type) {
	case map[string]any:
		if value[patchDirective] == remove {
			return nil, false
		}
		settle(value)
		return value, true
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			if isReplaceMarker(item) {
				continue
			}
			if item, keep := settleValue(item); keep {
				items = append(items, item)
			}
		}
		return items, true
	}
	return value, true
}
