package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recoverFrom does what can be done when the API server has refused an apply. It returns the live object if that has been
// written in another way, or an error. That is the refusal if nothing can be done.
func (a *applier) recoverFrom(ctx context.Context, d *desired, refusal error) (client.Object, error) {
	duplicates := duplicateFields(refusal)
	recreates := d.options.recreate && apierrors.IsInvalid(refusal) && !isUntypable(refusal)
	if len(duplicates) == 0 && !recreates {
		return nil, refusal
	}
	live, err := a.readLive(ctx, d) // the cache may show it as ours although it has another owner by now
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.owner.mayWrite(d, live); err != nil {
		return nil, err
	}
	patch, err := replaceDuplicates(d, live, duplicates)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	case patch != nil:
		if err := a.jsonPatch(ctx, d, live, patch); err != nil {
			return nil, fmt.Errorf("replace items of %s that have a value of ours: %w", d, err)
		}
		return live, nil
	case recreates:
		return nil, a.recreate(ctx, d, live, refusal)
	}
	return nil, refusal
}

const reasonRecreating = "Recreating"

// recreate deletes an object of which the API server refuses a change. The event of its deletion triggers the reconcile
// that creates it. Nothing in the refusal distinguishes an immutable field from a wrong value for certain, so a dry run
// tries first to create the new object, under another name.
func (a *applier) recreate(ctx context.Context, d *desired, live client.Object, refusal error) error {
	if a.owners.isRecreated(d) {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if _, err := a.postDryRun(ctx, d, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", d, err))
	}
	if err := a.confirm(ctx, d.owner); err != nil {
		return err
	}
	if err := deleteExactly(ctx, d.owner.client, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to recreate it: %w", d, err)
	}
	a.owners.setRecreated(d)
	a.record(d.owner, d.kind, live, outcomeRecreated, "")
	a.writes.Forget(live, client.ObjectKeyFromObject(live))
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is recreated, since one of its fields cannot be changed", d)}
}

// If another writer changes the key of one of our list items (a port's number), server-side apply sees an item of that
// writer in place of ours. Applying adds our item beside it. If the two have the same value in another field that must be
// unique (the port's name), the API server refuses them with FieldValueDuplicate. Then our items replace those that have
// one of their values, and other items stay.

// duplicateFields returns the paths of the fields in which the API server found a value twice, such as
// spec.ports[1].name.
func duplicateFields(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldValueDuplicate {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replaceDuplicates returns a JSON patch of the live object that replaces the lists in which a value is there twice. It
// marks the object as created, so that its fields are migrated before the next apply. The patch is nil if there are no
// fields, or if one of them is not in an item of a list that is ours too.
func replaceDuplicates(d *desired, live client.Object, fields []string) ([]byte, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	liveTree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	desiredTree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.object)
	if err != nil {
		return nil, err
	}
	patch := []jsonPatchOperation{
		{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}, // a conflict if another writer was faster
		{"replace", jsonPointer(fieldPath{{name: "metadata"}, {name: "annotations"}, {name: AnnotationApplied}}), d.lastApplied(byCreate)},
	}
	replaced := map[string]bool{}
	for _, field := range fields {
		path, ok := parseFieldPath(field)
		if !ok {
			return nil, nil
		}
		listPath, list, ok := withoutDuplicates(liveTree, desiredTree, path)
		if !ok {
			return nil, nil
		}
		pointer := jsonPointer(listPath)
		if !replaced[pointer] {
			patch = append(patch, jsonPatchOperation{"replace", pointer, list})
		}
		replaced[pointer] = true
	}
	return json.Marshal(patch)
}

// withoutDuplicates returns the path of the list that a field is in, and the live list with our items in place of those
// that have the same value in that field. The path ends with the index of an item and the name of its field.
func withoutDuplicates(live, desired any, path fieldPath) (listPath fieldPath, list []any, ok bool) {
	if len(path) < 3 || !path[len(path)-2].isIndex || path[len(path)-1].isIndex {
		return nil, nil, false
	}
	listPath, name := path[:len(path)-2], path[len(path)-1].name
	for _, element := range listPath {
		if !element.isIndex {
			live, desired = fieldOf(live, element.name), fieldOf(desired, element.name)
			continue
		}
		items, _ := live.([]any)
		if element.index >= len(items) {
			return nil, nil, false
		}
		live = items[element.index]
		desired = itemNamed(desired, fieldOf(live, "name"))
	}
	theirs, _ := live.([]any)
	ours, _ := desired.([]any)
	for _, item := range theirs {
		value := fieldOf(item, name)
		duplicate := false
		for _, own := range ours {
			duplicate = duplicate || value != nil && reflect.DeepEqual(value, fieldOf(own, name))
		}
		if !duplicate {
			list = append(list, item)
		}
	}
	return listPath, append(list, ours...), len(list) < len(theirs) && len(ours) > 0
}

func fieldOf(tree any, name string) any {
	m, _ := tree.(map[string]any)
	return m[name]
}

// itemNamed returns the item of a list that has this name, or nil.
func itemNamed(list, name any) any {
	items, _ := list.([]any)
	for _, item := range items {
		if name != nil && fieldOf(item, "name") == name {
			return item
		}
	}
	return nil
}

// fieldPath is a path as the API server writes it in the causes of an error: spec.containers[0].ports[1].name, or
// metadata.labels[example.com/team].
type fieldPath []pathElement

// pathElement is the name of a field, a key of a map, or the index of an item.
type pathElement struct {
	name    string
	index   int
	isIndex bool
}

// parseFieldPath parses a path. It returns false if that is not well-formed.
func parseFieldPath(path string) (fieldPath, bool) {
	var elements fieldPath
	for path != "" {
		if inBrackets, isKey := strings.CutPrefix(path, "["); isKey {
			key, rest, closed := strings.Cut(inBrackets, "]")
			if !closed || len(elements) == 0 {
				return nil, false
			}
			if i, err := strconv.ParseUint(key, 10, 31); err == nil {
				elements = append(elements, pathElement{index: int(i), isIndex: true})
			} else {
				elements = append(elements, pathElement{name: key})
			}
			path = rest
			continue
		}
		if len(elements) > 0 {
			rest, dotted := strings.CutPrefix(path, ".")
			if !dotted {
				return nil, false
			}
			path = rest
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return nil, false
		}
		elements = append(elements, pathElement{name: path[:end]})
		path = path[end:]
	}
	return elements, len(elements) > 0
}

// jsonPointer writes a path by RFC 6901.
func jsonPointer(path fieldPath) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, element := range path {
		pointer.WriteByte('/')
		if element.isIndex {
			pointer.WriteString(strconv.Itoa(element.index))
		} else {
			pointer.WriteString(escape.Replace(element.name))
		}
	}
	return pointer.String()
}
