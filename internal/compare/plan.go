package compare

import (
	"fmt"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Typed serialises and compares objects of one Go type. It is safe for concurrent use.
type Typed struct {
	typ  reflect.Type // the struct, not the pointer
	root *structNode
}

// serverOwned are the fields of an object's own metadata that a client does not send.
var serverOwned = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
	"generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// Compile makes the plan for objects of obj's type, which must be a pointer to a
// struct. The type's schema is looked up by kind; one that schemas does not know
// is read by the defaults of custom resources.
func Compile(obj runtime.Object, kind schema.GroupVersionKind, schemas Schemas) (*Typed, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T: only a pointer to a struct can be planned", obj)
	}
	if why := unusual(t.Elem()); why != "" {
		return nil, fmt.Errorf("%s cannot be compared: its %s: give the type plain fields", t.Elem(), why)
	}
	c := compiler{structs: map[structKey]*structNode{}}
	typ, err := schemas.lookup(kind)
	if err != nil {
		return nil, err
	}
	root := c.structOf(t.Elem(), typ)
	// A copy: the type may occur inside itself, where nothing is left out.
	return &Typed{typ: t.Elem(), root: withoutServerOwned(root)}, nil
}

func withoutServerOwned(root *structNode) *structNode {
	object := root.without("apiVersion", "kind", "status")
	for i, f := range object.fields {
		if metadata, ok := f.node.(*structNode); ok && f.name == "metadata" {
			object.fields[i].node = metadata.without(serverOwned...)
		}
	}
	return object
}

// AppendJSON appends what is sent of obj, beside its kind and uid, to b:
// deterministic JSON that depends on nothing but obj's values. The error is an
// *EncodeError when a value's own marshaler refuses it.
func (p *Typed) AppendJSON(b []byte, obj runtime.Object) (encoded []byte, err error) {
	defer refused(&err)
	return p.root.encode(b, p.pointer(obj)), nil
}

// AppendApply appends the body of a server-side apply of obj: what AppendJSON
// gives, with the kind, and with the uid of the object it is meant for unless empty.
func (p *Typed) AppendApply(b []byte, obj runtime.Object, kind schema.GroupVersionKind, uid string) (encoded []byte, err error) {
	defer refused(&err)
	b = append(b, `{"apiVersion":`...)
	b = appendString(b, kind.GroupVersion().String())
	b = append(b, `,"kind":`...)
	b = appendString(b, kind.Kind)
	object := p.pointer(obj)
	for i := range p.root.fields {
		if p.root.unset[i].zero(object) {
			continue
		}
		f := &p.root.fields[i]
		start := len(b)
		b = append(b, ',')
		field := len(b)
		b = f.encode(b, object)
		switch {
		case len(b) == field:
			b = b[:start]
		case f.name == "metadata" && uid != "":
			b = append(b[:len(b)-1], `,"uid":`...)
			b = append(appendString(b, uid), '}')
		}
	}
	return append(b, '}'), nil
}

// refused gives what opaqueNode could not encode as an error.
func refused(err *error) {
	switch r := recover().(type) {
	case nil:
	case *EncodeError:
		*err = r
	default:
		panic(r)
	}
}

// Covers reports whether everything that would be sent of want is in have.
func (p *Typed) Covers(want, have runtime.Object) bool {
	return p.root.covers(nil, p.pointer(want), p.pointer(have))
}

// Differences lists where have does not cover want, in a stable order; nil when it does.
func (p *Typed) Differences(want, have runtime.Object) []Difference {
	var t trace
	p.root.covers(&t, p.pointer(want), p.pointer(have))
	return t.found
}

// pointer checks the type once, so that what follows may rely on it.
func (p *Typed) pointer(obj runtime.Object) unsafe.Pointer {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != p.typ || v.IsNil() {
		panic(fmt.Sprintf("plan of %s used for %T", p.typ, obj))
	}
	return v.UnsafePointer()
}
