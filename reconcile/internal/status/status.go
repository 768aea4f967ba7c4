// Package status reads and changes the status of a kind without knowing its Go type at compile time: its conditions, the
// observed generation and the request that was handled. It sends no requests.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/compare"
)

// Type reads and changes the status of the objects of one kind.
type Type interface {
	// Conditions returns the conditions of the object. If the status has no such field, it returns nil.
	Conditions(obj client.Object) (conditions.List, error)
	// Complete sets the fields that are set whenever the status is written. If observed is false, the observed
	// generation stays as it is in before, because the conditions are still about an earlier generation.
	Complete(before, obj client.Object, observed bool)
	// ObservedGeneration returns the observed generation. If the status has no such field, has is false.
	ObservedGeneration(obj client.Object) (generation int64, has bool)
	// Handled returns the person's request that the status acknowledges as handled. If the status has no such field, it
	// returns an empty string.
	Handled(obj client.Object) string
	// SetHandled acknowledges a person's request for a pass.
	SetHandled(obj client.Object, request string)
	// FillRequired sets fields that the schema requires to an empty list or map if they are nil. nil would be sent as null,
	// which the API server refuses.
	FillRequired(obj client.Object)
	// Equal reports whether two objects have the same status.
	Equal(a, b client.Object) bool
	// Patch returns the merge patch from the status of before to the status of after. If locked is true, or if the
	// patch could overwrite a change of another writer, the patch carries the resource version of before.
	Patch(before, after client.Object, locked bool) ([]byte, error)
	// Recordable returns an error if nothing can be stored in the status.
	Recordable() error
}

// None is for a kind whose status is not written by the reconciler.
var None Type = none{}

type none struct{}

var errNotRecordable = errors.New("checkpoint of a kind whose status is not written: record what is going to be done elsewhere, such as in an annotation of the object")

func (none) Conditions(client.Object) (conditions.List, error)         { return nil, nil }
func (none) Complete(_, _ client.Object, _ bool)                       {}
func (none) ObservedGeneration(client.Object) (int64, bool)            { return 0, false }
func (none) Handled(client.Object) string                              { return "" }
func (none) SetHandled(client.Object, string)                          {}
func (none) FillRequired(client.Object)                                {}
func (none) Equal(_, _ client.Object) bool                             { return true }
func (none) Patch(_, _ client.Object, _ bool) (data []byte, err error) { return nil, nil }
func (none) Recordable() error                                         { return errNotRecordable }

// structStatus is for a kind whose status is a struct. Fields are given as indices in the status struct, through
// embedded structs.
type structStatus struct {
	field              int     // the index of the status in the object
	conditions         []int   // nil if the status has no conditions
	observedGeneration []int   // nil if the status has no such field
	handledRequest     []int   // nil if the status has no such field
	required           [][]int // lists and maps that are not omitted from the JSON when they are empty
	binder             conditions.Binder
	history            func(obj client.Object) conditions.List // nil unless the conditions are a history
}

// New returns the Type of a kind whose objects have this struct type.
func New(object reflect.Type, binder conditions.Binder, history func(client.Object) conditions.List) (Type, error) {
	f, ok := object.FieldByName("Status")
	switch {
	case !ok:
		return None, nil
	case f.Type.Kind() != reflect.Struct || len(f.Index) != 1:
		return nil, fmt.Errorf("the status of %s is not a plain struct: a pass could not find out what changed in it", object)
	}
	s := &structStatus{field: f.Index[0], binder: binder, history: history}
	for _, field := range reflect.VisibleFields(f.Type) {
		if field.Anonymous && field.Type.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("the status of %s embeds the pointer %s: embed the struct", object, field.Type)
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "conditions":
			s.conditions = field.Index
		case name == "observedGeneration" && field.Type.Kind() == reflect.Int64:
			s.observedGeneration = field.Index
		case name == "lastHandledReconcileAt" && field.Type.Kind() == reflect.String:
			s.handledRequest = field.Index
		}
		collection := field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Map
		if collection && name != "" && name != "-" && !strings.Contains(options, "omit") {
			s.required = append(s.required, field.Index)
		}
	}
	return s, nil
}

// The method "of" returns the status of an object, as a value that can be changed.
func (s *structStatus) of(obj client.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().Field(s.field)
}

func (s *structStatus) Conditions(obj client.Object) (conditions.List, error) {
	switch {
	case s.history != nil:
		return s.history(obj), nil
	case s.conditions == nil:
		return nil, nil
	}
	return s.binder.Bind(s.of(obj).FieldByIndex(s.conditions).Addr().Interface())
}

func (s *structStatus) ObservedGeneration(obj client.Object) (generation int64, has bool) {
	if s.observedGeneration == nil {
		return 0, false
	}
	return s.of(obj).FieldByIndex(s.observedGeneration).Int(), true
}

func (s *structStatus) Complete(before, obj client.Object, observed bool) {
	if s.observedGeneration != nil {
		generation := obj.GetGeneration()
		if !observed {
			generation = s.of(before).FieldByIndex(s.observedGeneration).Int()
		}
		s.of(obj).FieldByIndex(s.observedGeneration).SetInt(generation)
	}
	s.FillRequired(obj)
	if s.history == nil {
		s.keepTransitions(before, obj)
	}
}

func (s *structStatus) Handled(obj client.Object) string {
	if s.handledRequest == nil {
		return ""
	}
	return s.of(obj).FieldByIndex(s.handledRequest).String()
}

func (s *structStatus) SetHandled(obj client.Object, request string) {
	if s.handledRequest != nil {
		s.of(obj).FieldByIndex(s.handledRequest).SetString(request)
	}
}

// FillRequired fills only fields of the status itself, and not of structs inside it.
func (s *structStatus) FillRequired(obj client.Object) {
	status := s.of(obj)
	for _, i := range s.required {
		switch field := status.FieldByIndex(i); {
		case !field.IsNil():
		case field.Kind() == reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		default:
			field.Set(reflect.MakeSlice(field.Type(), 0, 0))
		}
	}
}

// keepTransitions restores lastTransitionTime of a condition that was changed in this pass and then changed back.
func (s *structStatus) keepTransitions(before, after client.Object) {
	if s.conditions == nil {
		return
	}
	standard := reflect.TypeFor[[]metav1.Condition]()
	field := func(obj client.Object) []metav1.Condition {
		list := s.of(obj).FieldByIndex(s.conditions)
		if is, ok := reflect.TypeAssert[[]metav1.Condition](list); ok {
			return is
		}
		if !list.CanConvert(standard) { // the adapter sets the times of a kind's own condition struct
			return nil
		}
		return list.Convert(standard).Interface().([]metav1.Condition)
	}
	old, all := field(before), field(after)
	for i := range all {
		if was, ok := conditions.Get(old, all[i].Type); ok && was.Status == all[i].Status {
			all[i].LastTransitionTime = was.LastTransitionTime
		}
	}
}

func (s *structStatus) Equal(a, b client.Object) bool {
	return compare.Equal(s.of(a).Addr().Interface(), s.of(b).Addr().Interface())
}

func (s *structStatus) Recordable() error { return nil }

// Patch carries the UID, so that it never writes another object of the same name. It also carries the resource version, if
// locked is true, if a list changes, or if a value is removed. A merge patch replaces a whole list, which would undo
// changes of another writer.
func (s *structStatus) Patch(before, after client.Object, locked bool) ([]byte, error) {
	changed := reflect.New(reflect.TypeOf(before).Elem())
	changed.Elem().Set(reflect.ValueOf(before).Elem())
	changed.Elem().Field(s.field).Set(s.of(after))
	data, err := client.MergeFrom(before).Data(changed.Interface().(client.Object))
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	first := s.of(before).IsZero()
	if first { // the first time, send the whole status: the schema may require fields that are zero
		patch["status"] = s.of(after).Interface()
	}
	metadata := map[string]any{}
	if uid := before.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	if locked || first || replaces(patch) {
		metadata["resourceVersion"] = before.GetResourceVersion()
	}
	patch["metadata"] = metadata
	return json.Marshal(patch)
}

// replaces reports whether a merge patch contains a list, or a null, which removes a value.
func replaces(v any) bool {
	switch v := v.(type) {
	case nil, []any:
		return true
	case map[string]any:
		for _, e := range v {
			if replaces(e) {
				return true
			}
		}
	}
	return false
}
