package compare

import (
	"fmt"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Typed serialises and compares objects of one Go type. [Compile] returns it. It is safe for concurrent use. Its methods
// panic for objects of another type and for nil.
type Typed struct {
	typ    reflect.Type // the struct, not the pointer
	root   *structComparer
	schema Schema
}

// Compile returns the Typed for objects of obj's type, which must be a pointer to a struct. The schema is that of kind.
// A kind without a schema is compared by the defaults of custom resources.
//
// It returns an error for a type that is no such pointer or that has fields which only encoding/json can encode, and
// errors of schemas.
func Compile(obj runtime.Object, kind schema.GroupVersionKind, schemas Schemas) (*Typed, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T: only a pointer to a struct can be compared", obj)
	}
	if why := unsupportedField(t.Elem()); why != "" {
		return nil, fmt.Errorf("%s cannot be compared: its %s: use a plain field instead", t.Elem(), why)
	}
	c := compiler{structs: map[structKey]*structComparer{}}
	typ, err := schemas.lookup(kind)
	if err != nil {
		return nil, err
	}
	root := c.compileStruct(t.Elem(), typ)
	// withoutServerOwned copies: where the type occurs inside itself, its fields are not the server's.
	return &Typed{typ: t.Elem(), root: withoutServerOwned(root), schema: Schema{typ}}, nil
}

// Schema returns the schema of the kind.
func (t *Typed) Schema() Schema { return t.schema }

// AppendJSON appends to b what is sent of obj, without its apiVersion, kind and uid. The JSON is deterministic: it
// depends on the values of obj alone. The error is an [*EncodeError] if a value has no JSON form.
func (t *Typed) AppendJSON(b []byte, obj runtime.Object) (encoded []byte, err error) {
	defer recoverEncodeError(&err)
	return t.root.encode(b, t.pointerTo(obj)), nil
}

// AppendApply appends the body of a server-side apply of obj: the JSON of AppendJSON with apiVersion and kind, and with
// the uid and resource version that the live object must have, unless they are empty.
func (t *Typed) AppendApply(b []byte, obj runtime.Object, kind schema.GroupVersionKind, uid, version string) (encoded []byte, err error) {
	defer recoverEncodeError(&err)
	b = append(b, `{"apiVersion":`...)
	b = appendString(b, kind.GroupVersion().String())
	b = append(b, `,"kind":`...)
	b = appendString(b, kind.Kind)
	object := t.pointerTo(obj)
	for i := range t.root.fields {
		if t.root.unset[i].zero(object) {
			continue
		}
		f := &t.root.fields[i]
		start := len(b)
		b = append(b, ',')
		field := len(b)
		b = f.encode(b, object)
		switch {
		case len(b) == field:
			b = b[:start]
		case f.name == "metadata":
			b = appendPrecondition(b[:len(b)-1], "resourceVersion", version)
			b = append(appendPrecondition(b, "uid", uid), '}')
		}
	}
	return append(b, '}'), nil
}

func appendPrecondition(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(appendString(append(b, ','), name), ':')
	return appendString(b, value)
}

// recoverEncodeError is deferred. It returns the panic of a jsonComparer as an error.
func recoverEncodeError(err *error) {
	switch r := recover().(type) {
	case nil:
	case *EncodeError:
		*err = r
	default:
		panic(r)
	}
}

// Covers reports whether have has everything that would be sent of want.
func (t *Typed) Covers(want, have runtime.Object) bool {
	return t.root.covers(nil, t.pointerTo(want), t.pointerTo(have))
}

// Differences returns the places where have does not cover want, in a stable order. It returns nil if have covers want.
func (t *Typed) Differences(want, have runtime.Object) []Difference {
	var r recorder
	t.root.covers(&r, t.pointerTo(want), t.pointerTo(have))
	return r.found
}

// pointerTo returns the address of an object after checking its type. The comparers rely on that type.
func (t *Typed) pointerTo(obj runtime.Object) unsafe.Pointer {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != t.typ || v.IsNil() {
		panic(fmt.Sprintf("comparer of %s used for %T", t.typ, obj))
	}
	return v.UnsafePointer()
}
