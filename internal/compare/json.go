package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unsafe"
)

// jsonComparer is for types that only encoding/json or their own marshaler can encode: raw JSON, durations, floats,
// interfaces. Values are compared as JSON.
type jsonComparer struct{ typ reflect.Type }

// EncodeError means that a value has no JSON form: its marshaler returned an error, which Unwrap returns.
type EncodeError struct {
	Type reflect.Type
	Err  error
}

func (e *EncodeError) Error() string { return fmt.Sprintf("%s has no JSON form: %v", e.Type, e.Err) }
func (e *EncodeError) Unwrap() error { return e.Err }

func (c jsonComparer) decode(p unsafe.Pointer) (any, error) {
	b, err := json.Marshal(reflect.NewAt(c.typ, p).Interface())
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err = d.Decode(&v)
	return withoutNulls(v), err
}

func (c jsonComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	if omitEmpty && reflect.NewAt(c.typ, p).Elem().IsZero() {
		return true
	}
	v, err := c.decode(p)
	return err == nil && v == nil
}

func (c jsonComparer) encode(b []byte, p unsafe.Pointer) []byte {
	v, err := c.decode(p)
	if err != nil {
		panic(&EncodeError{Type: c.typ, Err: err}) // recoverEncodeError returns it
	}
	return appendUnstructured(b, v)
}

func (c jsonComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, err := c.decode(want)
	h, liveErr := c.decode(have)
	if err != nil || liveErr != nil || !unstructuredCovers(w, h) {
		return recordValues(r, c, want, have)
	}
	return true
}

// withoutNulls removes the nulls of v in place.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(e)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = withoutNulls(e)
		}
	}
	return v
}

// appendUnstructured appends v as JSON, with sorted keys and without null fields.
func appendUnstructured(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(b, v)
	case map[string]any:
		b = append(b, '{')
		for _, k := range sortedKeys(v, nil) {
			if v[k] == nil {
				continue
			}
			b = append(appendString(b, k), ':')
			b = append(appendUnstructured(b, v[k]), ',')
		}
		return append(bytes.TrimSuffix(b, []byte{','}), '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendUnstructured(b, e)
		}
		return append(b, ']')
	}
	if v == nil {
		return append(b, "null"...)
	}
	if f, ok := v.(float64); ok {
		return strconv.AppendFloat(b, f, 'g', -1, 64)
	}
	return fmt.Append(b, v) // json.Number, integers, bool
}

// unstructuredCovers reports whether have covers want, two values without a schema. They are compared as the fields of a
// custom resource are by default: lists are atomic, maps are not.
func unstructuredCovers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			if h, ok := live[k]; !ok || !unstructuredCovers(w, h) {
				return false
			}
		}
		return true
	case []any:
		live, ok := have.([]any)
		if !ok || len(live) != len(want) {
			return false
		}
		for i, w := range want {
			if !unstructuredCovers(w, live[i]) {
				return false
			}
		}
		return true
	case json.Number:
		live, ok := have.(json.Number)
		if !ok || want == live {
			return ok
		}
		w, wErr := want.Float64()
		h, hErr := live.Float64()
		return wErr == nil && hErr == nil && w == h
	}
	return want == have
}
