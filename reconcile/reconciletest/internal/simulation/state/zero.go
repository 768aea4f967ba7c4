package state

import (
	"reflect"
	"strings"
)

// dropZeros removes numbers, texts and booleans from in, which is the JSON value of v, if they are zero in v: nobody has set them. A
// pointer to a zero was set, so its value stays.
func dropZeros(v reflect.Value, in any) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropZeros(v.Elem(), in)
		}
	case reflect.Struct:
		if fields, ok := in.(map[string]any); ok {
			dropZeroFields(v, fields)
		}
	case reflect.Slice:
		if items, ok := in.([]any); ok && len(items) == v.Len() {
			for i := range items {
				dropZeros(v.Index(i), items[i])
			}
		}
	case reflect.Map:
		if values, ok := in.(map[string]any); ok && v.Type().Key().Kind() == reflect.String {
			for _, key := range v.MapKeys() {
				dropZeros(v.MapIndex(key), values[key.String()])
			}
		}
	}
}

// dropZeroFields removes the fields from in that are numbers, texts or booleans in the struct v, and are zero there.
func dropZeroFields(v reflect.Value, in map[string]any) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported():
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			dropZeros(v.Field(i), in)
		case isScalar(v.Field(i).Kind()):
			if v.Field(i).IsZero() {
				delete(in, name)
			}
		default:
			dropZeros(v.Field(i), in[name])
		}
	}
}

func isScalar(kind reflect.Kind) bool {
	return kind == reflect.String || kind >= reflect.Bool && kind <= reflect.Float64
}
