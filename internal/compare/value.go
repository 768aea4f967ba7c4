package compare

import (
	"reflect"
	"sync"
	"unsafe"
)

var values sync.Map // reflect.Type → node: a function of the type alone

// AppendValue appends any value as the JSON that a plan would give of it, as it stands:
// nothing is taken for the server's own. The error is an *EncodeError.
func AppendValue(b []byte, v any) (encoded []byte, err error) {
	if v == nil {
		return append(b, "null"...), nil
	}
	defer refused(&err)
	t := reflect.TypeOf(v)
	n, ok := values.Load(t)
	if !ok {
		c := compiler{structs: map[structKey]*structNode{}}
		n, _ = values.LoadOrStore(t, c.node(t, typeRef{}))
	}
	p := reflect.New(t)
	p.Elem().Set(reflect.ValueOf(v))
	return n.(node).encode(b, unsafe.Pointer(p.Pointer())), nil
}

// Value compares values of one Go type in both directions.
type Value struct{ node node }

// CompileValue makes the plan of a type that is no object: a status.
func CompileValue(t reflect.Type) *Value {
	c := compiler{structs: map[structKey]*structNode{}}
	return &Value{node: c.node(t, typeRef{})}
}

// Equal reports whether both values, of the plan's type, would be sent alike.
func (v *Value) Equal(a, b unsafe.Pointer) bool {
	return v.node.covers(nil, a, b) && v.node.covers(nil, b, a)
}
