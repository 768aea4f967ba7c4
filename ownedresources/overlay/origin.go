package overlay

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Origin returns the field of the patch that caused the refusal of a field of the pod template that [PodTemplate.Apply] returned. The
// result is one of these: the field of the patch that sets the refused field, the object of the patch that sets fields beside it, the new
// item that lacks it, or the item that removes something to which the refused field refers. found is false if the patch does not affect the
// refused field, or if the template was not merged with this patch.
//
// at is the path of the refused field: a string for each field and each key of a map, and an int for the index of each item. The result is
// relative to the patch, as in spec.containers[0].image.
func (p *PodTemplate) Origin(merged *corev1.PodTemplateSpec, at []any) (path string, found bool) {
	if p.isEmpty() {
		return "", false
	}
	again, err := p.Apply(*merged, nil)
	if err != nil || !equality.Semantic.DeepEqual(&again, merged) { // a patch that was merged into the template changes nothing when it is applied again
		return "", false
	}
	patch, _ := p.parse(nil)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
	if err != nil {
		return "", false
	}
	whole := place{patch: patch, merged: tree, schema: member{goType: podTemplateType}}
	here, added := whole, false
	for i, step := range at {
		next, found := here.below(step)
		if found {
			here, added = next, added || next.isAdded()
			continue
		}
		if added || i == len(at)-1 && here.isObjectOfPod() {
			return here.path.String(), true
		}
		if removal := whole.removalOf(valueOf(tree, at)); removal != nil {
			return removal.String(), true
		}
		return "", false
	}
	if here.depth < 2 { // a path that is only spec or metadata does not help
		return "", false
	}
	return here.path.String(), true
}

// valueOf returns the text at a path in a JSON value, or "" if the path leads to no text.
func valueOf(tree any, at []any) string {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			object, _ := tree.(map[string]any)
			tree = object[step]
		case int:
			items, _ := tree.([]any)
			if step >= len(items) {
				return ""
			}
			tree = items[step]
		}
	}
	text, _ := tree.(string)
	return text
}

// place is a value in a patch, and the value in the merged pod template that corresponds to it.
type place struct {
	patch, merged any
	schema        member
	path          *field.Path // in the patch
	depth         int
	isItem        bool
}

// below returns the value to which one step of a path leads: the key of a map, or the index of an item in the merged list. found is false
// if the patch has no such value.
func (p place) below(step any) (next place, found bool) {
	next.depth = p.depth + 1
	switch step := step.(type) {
	case string:
		object, _ := p.patch.(map[string]any)
		merged, _ := p.merged.(map[string]any)
		if next.patch, found = object[step]; !found {
			return next, false
		}
		next.merged, next.path = merged[step], p.child(step)
		next.schema, found = memberOf(p.schema.goType, step)
		return next, found
	case int:
		items, _ := p.patch.([]any)
		merged, _ := p.merged.([]any)
		i := p.indexOf(items, merged, step)
		if i < 0 {
			return next, false
		}
		next.patch, next.merged, next.path, next.isItem = items[i], merged[step], p.path.Index(i), true
		next.schema = member{goType: withoutPointer(p.schema.goType.Elem())}
		return next, true
	}
	return next, false
}

// child returns the path of a field or of a map's entry below the place.
func (p place) child(name string) *field.Path {
	switch {
	case p.path == nil:
		return field.NewPath(name)
	case p.schema.goType.Kind() == reflect.Map:
		return p.path.Key(name)
	}
	return p.path.Child(name)
}

// indexOf returns the index in the patch's list of the item that has index i in the merged list, or -1. A list without a merge key is
// replaced as a whole, so both indexes are the same.
func (p place) indexOf(items, merged []any, i int) int {
	if i >= len(merged) {
		return -1
	}
	item, isObject := merged[i].(map[string]any)
	if !isObject || p.schema.mergeKey == "" {
		if i < len(items) {
			return i
		}
		return -1
	}
	key := bothKeys(item, p.schema)
	return slices.IndexFunc(items, func(patched any) bool {
		object, _ := patched.(map[string]any)
		return object[p.schema.mergeKey] != nil && bothKeys(object, p.schema).meets(key)
	})
}

// bothKeys returns the key of an item as an itemKey. If the items are identified by one field, its second field is
// nil.
func bothKeys(item map[string]any, list member) itemKey {
	key := keyIn(item, list)
	if both, isComposite := key.(itemKey); isComposite {
		return both
	}
	return itemKey{first: key}
}

// isAdded reports whether the place is an item that the patch has added: all fields of the merged item are in the
// patch.
func (p place) isAdded() bool {
	patch, isObject := p.patch.(map[string]any)
	merged, _ := p.merged.(map[string]any)
	for name, value := range merged {
		if object, isEmpty := value.(map[string]any); isEmpty && len(object) == 0 { // an empty struct
			continue
		}
		if patch[name] == nil {
			return false
		}
	}
	return p.isItem && isObject
}

// isObjectOfPod reports whether the place is an object inside the spec or the metadata, and not an item of a list.
func (p place) isObjectOfPod() bool {
	_, isObject := p.patch.(map[string]any)
	return isObject && !p.isItem && p.depth > 1
}

// removalOf returns the path, in the patch, of the item that deletes the item with the name, or of a list that replaces the base's list. If
// the patch has neither, it returns nil.
func (p place) removalOf(name string) *field.Path {
	switch patch := p.patch.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(patch)) {
			if next, found := p.below(field); found && name != "" {
				if path := next.removalOf(name); path != nil {
					return path
				}
			}
		}
	case []any:
		for i, item := range patch {
			object, _ := item.(map[string]any)
			switch {
			case isReplaceMarker(item):
				return p.path
			case object[patchDirective] == remove && object[p.schema.mergeKey] == name:
				return p.path.Index(i)
			}
			inner := place{patch: item, path: p.path.Index(i), schema: member{goType: withoutPointer(p.schema.goType.Elem())}, depth: p.depth + 1}
			if path := inner.removalOf(name); path != nil {
				return path
			}
		}
	}
	return nil
}
