package overlay

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	podTemplateType = reflect.TypeFor[corev1.PodTemplateSpec]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// member describes a field of a struct or a value of a map: what a JSON object may contain under a name.
type member struct {
	goType reflect.Type // never a pointer
	index  []int        // the index of the field in its struct

	// mergeKey is the field that identifies the items of a list which is merged item by item.
	mergeKey string
	// merges is true if the items of the list are merged one by one. Other lists are atomic: they are replaced as a
	// whole.
	merges bool
}

// fields caches the results of fieldsOf: reflect.Type to map[string]member.
var fields sync.Map

// fieldsOf returns the fields of a struct type by their names in JSON, including the fields of inlined structs. The
// tags patchStrategy and patchMergeKey say how lists are merged. The API server reads the same tags.
func fieldsOf(t reflect.Type) map[string]member {
	if known, ok := fields.Load(t); ok {
		return known.(map[string]member)
	}
	found := map[string]member{}
	collectFields(found, t, nil)
	fields.Store(t, found)
	return found
}

func collectFields(found map[string]member, t reflect.Type, above []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clone(above), i)
		switch {
		case name == "" && f.Anonymous:
			collectFields(found, f.Type, index)
		case name != "" && name != "-":
			found[name] = member{
				goType: withoutPointer(f.Type), index: index, mergeKey: f.Tag.Get("patchMergeKey"),
				merges: slices.Contains(strings.Split(f.Tag.Get("patchStrategy"), ","), "merge"),
			}
		}
	}
}

// memberOf returns what a JSON object of the type t may contain under the name.
func memberOf(t reflect.Type, name string) (m member, found bool) {
	switch {
	case isScalar(t):
		return member{}, false
	case t.Kind() == reflect.Map:
		return member{goType: withoutPointer(t.Elem())}, true
	case t.Kind() == reflect.Struct:
		m, found = fieldsOf(t)[name]
	}
	return m, found
}

// isScalar reports whether a type has no members. A type with its own JSON encoding, such as a quantity, has none.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		return reflect.PointerTo(t).Implements(unmarshalerType)
	}
	return true
}

func withoutPointer(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
