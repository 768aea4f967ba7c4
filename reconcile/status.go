package reconcile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/compare"
)

// statusType knows where a kind's status keeps what the pass sets.
type statusType struct {
	status             int   // index of the object's field; -1 when there is none
	conditions         []int // index in the status, through embedded structs; nil when there is none
	observedGeneration []int
	required           [][]int // lists and maps of it that are there even when empty
	values             *compare.Value
	binder             conditions.Binder
}

func newStatusType(object reflect.Type, binder conditions.Binder) (*statusType, error) {
	s := &statusType{status: -1, binder: binder}
	f, ok := object.FieldByName("Status")
	switch {
	case !ok:
		return s, nil
	case f.Type.Kind() != reflect.Struct || len(f.Index) != 1:
		return nil, fmt.Errorf("the status of %s is no plain struct: a pass could not tell what changed in it", object)
	}
	s.status = f.Index[0]
	s.values = compare.CompileValue(f.Type)
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
		}
		collection := field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Map
		if collection && name != "" && name != "-" && !strings.Contains(options, "omit") {
			s.required = append(s.required, field.Index)
		}
	}
	return s, nil
}

func (s *statusType) of(obj reflect.Value) reflect.Value { return obj.Elem().Field(s.status) }

// list binds the object's conditions; the list is nil for a kind that has none.
func (s *statusType) list(obj reflect.Value) (conditions.List, error) {
	if s.status < 0 || s.conditions == nil {
		return nil, nil
	}
	return s.binder.Bind(s.of(obj).FieldByIndex(s.conditions).Addr().Interface())
}

// finish sets what every pass sets: the generation seen, and empty lists and maps for those that the
// schema requires, since a nil one would be null, which the API server refuses. After a
// conflict the conditions still tell of the generation before, and so does the status.
func (s *statusType) finish(before, obj client.Object, seen bool) {
	if s.status < 0 {
		return
	}
	status := s.of(reflect.ValueOf(obj))
	if s.observedGeneration != nil {
		generation := obj.GetGeneration()
		if !seen {
			generation = s.of(reflect.ValueOf(before)).FieldByIndex(s.observedGeneration).Int()
		}
		status.FieldByIndex(s.observedGeneration).SetInt(generation)
	}
	s.fill(obj)
}

// fill sets empty lists and maps for those that the schema requires, but for those in structs of the status.
func (s *statusType) fill(obj client.Object) {
	status := s.of(reflect.ValueOf(obj))
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

// keepTransitions undoes moves of lastTransitionTime where the pass set a condition to and fro.
func (s *statusType) keepTransitions(before, after client.Object) {
	if s.status < 0 || s.conditions == nil {
		return
	}
	standard := reflect.TypeFor[[]metav1.Condition]()
	field := func(obj client.Object) []metav1.Condition {
		list := s.of(reflect.ValueOf(obj)).FieldByIndex(s.conditions)
		if is, ok := reflect.TypeAssert[[]metav1.Condition](list); ok {
			return is
		}
		if !list.CanConvert(standard) { // structs of the kind's own, whose adapter has the clock
			return nil
		}
		return list.Convert(standard).Interface().([]metav1.Condition)
	}
	old := field(before)
	for i, c := range field(after) {
		if was, ok := conditions.Get(old, c.Type); ok && was.Status == c.Status {
			field(after)[i].LastTransitionTime = was.LastTransitionTime
		}
	}
}

func (s *statusType) equal(a, b client.Object) bool {
	return s.status < 0 || s.values.Equal(s.of(reflect.ValueOf(a)).Addr().UnsafePointer(), s.of(reflect.ValueOf(b)).Addr().UnsafePointer())
}

// patch gives the merge patch from before's status to after's. It carries the UID, so that a
// namesake is never written, and before's version if asked to, or if a list changes or a value
// goes: a merge patch replaces lists whole, and so would undo what another writer did to one meanwhile.
func (s *statusType) patch(before, after client.Object, locked bool) ([]byte, error) {
	changed := reflect.New(reflect.TypeOf(before).Elem())
	changed.Elem().Set(reflect.ValueOf(before).Elem())
	s.of(changed).Set(s.of(reflect.ValueOf(after)))
	data, err := client.MergeFrom(before).Data(changed.Interface().(client.Object))
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	first := s.of(reflect.ValueOf(before)).IsZero()
	if first { // all of it is sent: the schema may require what did not change from zero
		patch["status"] = s.of(reflect.ValueOf(after)).Interface()
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

// replaces reports whether a merge patch holds a list or a removal.
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

func statusPatch(data []byte) client.Patch { return client.RawPatch(types.MergePatchType, data) }
