package compare

import (
	"reflect"
	"sync"
	"unsafe"
)

var valueComparers sync.Map // reflect.Type → comparer; it is a function of the type

// AppendValue appends any value to b as deterministic JSON: fields and keys are sorted, quantities are in canonical
// form. It leaves out what [Typed] leaves out, except what the API server owns. The error is an [*EncodeError] if v has
// no JSON form.
func AppendValue(b []byte, v any) (encoded []byte, err error) {
	if v == nil {
		return append(b, "null"...), nil
	}
	defer recoverEncodeError(&err)
	t := reflect.TypeOf(v)
	n, ok := valueComparers.Load(t)
	if !ok {
		c := compiler{structs: map[structKey]*structComparer{}}
		n, _ = valueComparers.LoadOrStore(t, c.compile(t, typeRef{}))
	}
	p := reflect.New(t)
	p.Elem().Set(reflect.ValueOf(v))
	return n.(comparer).encode(b, unsafe.Pointer(p.Pointer())), nil
}

// Value compares values of one Go type that is no object, such as a status. It is safe for concurrent use.
type Value struct{ comparer comparer }

// CompileValue returns the Value for a Go type.
func CompileValue(t reflect.Type) *Value {
	c := compiler{structs: map[structKey]*structComparer{}}
	return &Value{comparer: c.compile(t, typeRef{})}
}

// Equal reports whether each of two values covers the other, so that both would be sent alike. a and b are the
// addresses of values of the compiled type, which is not checked.
func (v *Value) Equal(a, b unsafe.Pointer) bool {
	return v.comparer.covers(nil, a, b) && v.comparer.covers(nil, b, a)
}
