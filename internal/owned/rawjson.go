package owned

import (
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	rawJSON        = reflect.TypeFor[runtime.RawExtension]()
	rawJSONHolders sync.Map // reflect.Type → bool: whether values of the type can contain raw JSON
)

// WithSortedJSON rewrites the raw JSON in an object that is to be created, without white space and with sorted fields. The API server
// brings raw JSON into the same form at every later write.
//
// The API server compares the raw JSON in an immutable spec byte by byte, such as the parameters of a ResourceClaim. If the JSON were
// stored in another form, the API server would refuse every later write as a change of the spec, even a change of a label.
func WithSortedJSON(obj client.Object) {
	if t := reflect.TypeOf(obj); t.Kind() == reflect.Pointer && holdsRawJSON(t.Elem()) {
		SortJSON(reflect.ValueOf(obj).Elem())
	}
}

func holdsRawJSON(t reflect.Type) bool {
	if known, ok := rawJSONHolders.Load(t); ok {
		return known.(bool)
	}
	holds := reaches(t, rawJSON, map[reflect.Type]bool{})
	rawJSONHolders.Store(t, holds)
	return holds
}

// reaches reports whether values of a type can contain values of another type. It looks at each type once, because types may contain
// themselves.
func reaches(t, other reflect.Type, seen map[reflect.Type]bool) bool {
	if t == other {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return reaches(t.Elem(), other, seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if field.IsExported() && reaches(field.Type, other, seen) {
				return true
			}
		}
	}
	return false
}

// SortJSON does the same as [WithSortedJSON] for one value, which must be settable.
func SortJSON(v reflect.Value) {
	if !holdsRawJSON(v.Type()) {
		return
	}
	if raw, ok := reflect.TypeAssert[*runtime.RawExtension](v.Addr()); ok {
		raw.Raw = sortedJSON(raw.Raw)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			SortJSON(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			SortJSON(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			SortJSON(element)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				SortJSON(v.Field(i))
			}
		}
	}
}

// sortedJSON returns JSON without white space and with sorted fields. It returns any other text unchanged: the API server
// refuses such a text with a message.
func sortedJSON(raw []byte) []byte {
	var value any
	if len(raw) == 0 || utiljson.Unmarshal(raw, &value) != nil {
		return raw
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return sorted
}
