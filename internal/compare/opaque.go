package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unsafe"
)

// opaqueNode is a value that only its own marshaler understands: raw JSON, durations,
// floats, untyped values. It is compared as JSON.
type opaqueNode struct{ typ reflect.Type }

// EncodeError is a value that its own marshaler refuses.
type EncodeError struct {
	Type reflect.Type
	Err  error
}

func (e *EncodeError) Error() string { return fmt.Sprintf("%s has no JSON form: %v", e.Type, e.Err) }
func (e *EncodeError) Unwrap() error { return e.Err }

func (n opaqueNode) decode(p unsafe.Pointer) (any, error) {
	b, err := json.Marshal(reflect.NewAt(n.typ, p).Interface())
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err = d.Decode(&v)
	return withoutNulls(v), err
}

func (n opaqueNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	if omitEmpty && reflect.NewAt(n.typ, p).Elem().IsZero() {
		return true
	}
	v, err := n.decode(p)
	return err == nil && v == nil
}

func (n opaqueNode) encode(b []byte, p unsafe.Pointer) []byte {
	v, err := n.decode(p)
	if err != nil {
		panic(&EncodeError{Type: n.typ, Err: err}) // AppendJSON gives it as an error
	}
	return appendUntyped(b, v)
}

func (n opaqueNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, err := n.decode(want)
	h, liveErr := n.decode(have)
	if err != nil || liveErr != nil || !untypedCovers(w, h) {
		return differs(t, n, want, have)
	}
	return true
}

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

func appendUntyped(b []byte, v any) []byte {
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
			b = append(appendUntyped(b, v[k]), ',')
		}
		return append(bytes.TrimSuffix(b, []byte{','}), '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendUntyped(b, e)
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

// untypedCovers reads values without schema as a custom resource's are read by default:
// lists are atomic, maps are not.
func untypedCovers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			if h, ok := live[k]; !ok || !untypedCovers(w, h) {
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
			if !untypedCovers(w, live[i]) {
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
