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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Somebody who changes the key of an item of ours (a port's number) leaves, for server-side
// apply, a foreign item in place of ours. Applying then adds ours beside it, and where the two
// clash in another field (the port's name) the API server refuses both. settleClashes puts ours
// in the place of what clashes with them, and leaves other items.

// clashes gives the fields in which the API server found a value twice: spec.ports[1].name.
func clashes(err error) []string {
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

// settleClashes writes the lists in question, and marks the object as one whose fields have to
// be taken over, as after a POST. It gives false if it does not understand what clashes.
func (a *applier) settleClashes(ctx context.Context, w wanted, fields []string) (client.Object, bool, error) {
	live, err := a.readLive(ctx, w)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", &w, err)
	}
	if err := w.owner.owns(&w, live); err != nil {
		return nil, false, err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, false, err
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.object)
	if err != nil {
		return nil, false, err
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	patch := []operation{
		{"replace", "/metadata/resourceVersion", live.GetResourceVersion()}, // a conflict if it moved
		{"replace", "/metadata/annotations/" + strings.ReplaceAll(AnnotationApplied, "/", "~1"), created.value(w.sum, setsReplicas(w.object))},
	}
	done := map[string]bool{}
	for _, field := range fields {
		pointer, list, ok := withoutClashes(before, want, field)
		if !ok {
			return nil, false, nil
		}
		if !done[pointer] {
			patch = append(patch, operation{"replace", pointer, list})
		}
		done[pointer] = true
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, false, err
	}
	if err := w.owner.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, body), w.owner.fieldManager); err != nil {
		return nil, false, fmt.Errorf("replace items of %s that clash with ours: %w", &w, err)
	}
	return live, true, nil
}

// withoutClashes gives the JSON pointer of the list that a field like spec.ports[1].name is in, and
// that list with our items in the place of those that have the same value in that field.
func withoutClashes(live, want any, field string) (pointer string, list []any, ok bool) {
	at := strings.LastIndex(field, "[")
	_, inItem, found := strings.Cut(field[max(at, 0):], "].")
	if at < 0 || !found {
		return "", nil, false
	}
	for _, step := range strings.FieldsFunc(field[:at], func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		pointer += "/" + step
		i, err := strconv.Atoi(step)
		if err != nil {
			live, want = child(live, step), child(want, step)
			continue
		}
		items, _ := live.([]any)
		if i >= len(items) {
			return "", nil, false
		}
		live = items[i]
		want = namesake(want, child(live, "name"))
	}
	theirs, _ := live.([]any)
	ours, _ := want.([]any)
	for _, item := range theirs {
		value := child(item, inItem)
		clash := false
		for _, own := range ours {
			clash = clash || value != nil && reflect.DeepEqual(value, child(own, inItem))
		}
		if !clash {
			list = append(list, item)
		}
	}
	return pointer, append(list, ours...), len(list) < len(theirs) && len(ours) > 0
}

// namesake gives the item of a list that has this name.
func namesake(list, name any) any {
	items, _ := list.([]any)
	for _, item := range items {
		if name != nil && child(item, "name") == name {
			return item
		}
	}
	return nil
}
