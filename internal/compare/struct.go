package compare

import (
	"reflect"
	"unsafe"
)

// structNode is a struct; its fields are sorted by name.
type structNode struct {
	fields []field
	unset  []probe // of the fields; apart, so that the many that nobody sets are soon passed over
	exact  bool    // what is left out must not be there
}

type field struct {
	name      string
	quoted    string // name as JSON, with its colon
	offset    uintptr
	omitEmpty bool
	unset     probe
	decided   bool // a field that the probe does not find unset is not left out
	node      node
}

// probe is a part of a field that is all zero only if the field is left out: looking
// at it first spares most fields, which nobody sets, the call of their node.
type probe struct {
	offset uint32
	width  uint32 // in bytes; 0 when the field has no such part
}

func newProbe(t reflect.Type, at uintptr, omitEmpty bool) probe {
	offset := uint32(at)
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice: // nil is left out in any case
		return probe{offset: offset, width: uint32(unsafe.Sizeof(uintptr(0)))}
	case reflect.String:
		if omitEmpty {
			return probe{offset: offset + uint32(unsafe.Offsetof(sliceHeader{}.len)), width: uint32(unsafe.Sizeof(0))}
		}
	case reflect.Bool, reflect.Int32, reflect.Int64:
		if omitEmpty {
			return probe{offset: offset, width: uint32(t.Size())}
		}
	}
	return probe{}
}

// decides reports whether the probe says all there is to say about a field being left out.
func (p probe) decides(t reflect.Type, n node, omitEmpty bool) bool {
	switch n.(type) {
	case *structNode:
		return true
	case stringNode, boolNode, intNode:
		return !omitEmpty || p.width > 0
	}
	switch t.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Slice, reflect.Map:
		return !omitEmpty
	}
	return false
}

func (p probe) zero(object unsafe.Pointer) bool {
	switch p.width {
	case 8:
		return *(*uint64)(unsafe.Add(object, p.offset)) == 0
	case 4:
		return *(*uint32)(unsafe.Add(object, p.offset)) == 0
	case 1:
		return *(*uint8)(unsafe.Add(object, p.offset)) == 0
	}
	return false
}

func (n *structNode) field(name string) *field {
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// without gives a copy that lacks some fields.
func (n *structNode) without(names ...string) *structNode {
	kept := &structNode{exact: n.exact}
next:
	for _, f := range n.fields {
		for _, name := range names {
			if f.name == name {
				continue next
			}
		}
		kept.fields = append(kept.fields, f)
	}
	kept.probe()
	return kept
}

// probe is called when the fields are complete.
func (n *structNode) probe() {
	n.unset = make([]probe, len(n.fields))
	for i := range n.fields {
		n.unset[i] = n.fields[i].unset
	}
}

// omitted is false: an empty struct shows as `{}` when it is encoded, which is cheaper
// than looking twice.
func (*structNode) omitted(unsafe.Pointer, bool) bool { return false }

func (n *structNode) encode(b []byte, p unsafe.Pointer) []byte {
	b = append(b, '{')
	for i := range n.fields {
		if n.unset[i].zero(p) {
			continue
		}
		before := len(b)
		if b = n.fields[i].encode(b, p); len(b) > before {
			b = append(b, ',')
		}
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

func (n *structNode) covers(t *trace, want, have unsafe.Pointer) bool {
	all := true
	for i := range n.fields {
		if !n.exact && n.unset[i].zero(want) {
			continue
		}
		f := &n.fields[i]
		w, h := unsafe.Add(want, f.offset), unsafe.Add(have, f.offset)
		unwanted := n.unset[i].zero(want) || !f.decided && f.node.omitted(w, f.omitEmpty)
		if unwanted && (!n.exact || f.node.omitted(h, f.omitEmpty)) {
			continue
		}
		t.enter(f.name)
		ok := false
		switch {
		case !unwanted:
			ok = f.node.covers(t, w, h)
		case t != nil:
			t.missing(nil, f.node.encode(nil, h))
		}
		t.leave()
		if !ok {
			if t == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// encode appends the field with its name, or nothing when the struct leaves it out although
// the probe did not find it unset.
func (f *field) encode(b []byte, object unsafe.Pointer) []byte {
	p := unsafe.Add(object, f.offset)
	if !f.decided && f.node.omitted(p, f.omitEmpty) {
		return b
	}
	start := len(b)
	b = append(b, f.quoted...)
	value := len(b)
	b = f.node.encode(b, p)
	if _, plain := f.node.(*structNode); plain && len(b) == value+len("{}") {
		return b[:start]
	}
	return b
}
