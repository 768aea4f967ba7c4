package compare

import (
	"reflect"
	"unsafe"
)

// structComparer is for structs. Its fields are sorted by name.
type structComparer struct {
	fields []field
	unset  []probe // those of the fields, in a slice of their own: most fields are unset and are skipped fast
	exact  bool    // a field that is left out must be absent in the live value
}

type field struct {
	name      string
	quoted    string // name as JSON, and a colon
	offset    uintptr
	omitEmpty bool
	unset     probe
	decided   bool // the probe alone decides whether the field is left out
	comparer  comparer
}

// probe is a part of a field's memory. If it is zero, the field is left out. Reading it first spares the call of a
// comparer for most fields, since most fields are unset.
type probe struct {
	offset uint32
	width  uint32 // in bytes; 0 if the field has no such part
}

func newProbe(t reflect.Type, at uintptr, omitEmpty bool) probe {
	offset := uint32(at)
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice: // nil is always left out
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

// decides reports whether the probe alone decides whether a field is left out.
func (p probe) decides(t reflect.Type, n comparer, omitEmpty bool) bool {
	switch n.(type) {
	case *structComparer:
		return true
	case stringComparer, boolComparer, intComparer:
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

func (c *structComparer) field(name string) *field {
	for i := range c.fields {
		if c.fields[i].name == name {
			return &c.fields[i]
		}
	}
	return nil
}

// without returns a copy that lacks some fields.
func (c *structComparer) without(names ...string) *structComparer {
	kept := &structComparer{exact: c.exact}
next:
	for _, f := range c.fields {
		for _, name := range names {
			if f.name == name {
				continue next
			}
		}
		kept.fields = append(kept.fields, f)
	}
	kept.copyProbes()
	return kept
}

// copyProbes fills unset. Call it when the fields are complete.
func (c *structComparer) copyProbes() {
	c.unset = make([]probe, len(c.fields))
	for i := range c.fields {
		c.unset[i] = c.fields[i].unset
	}
}

// omitted returns false. Whether a struct is empty shows when it is encoded: as `{}`. That is cheaper than looking at
// its fields twice.
func (*structComparer) omitted(unsafe.Pointer, bool) bool { return false }

func (c *structComparer) encode(b []byte, p unsafe.Pointer) []byte {
	b = append(b, '{')
	for i := range c.fields {
		if c.unset[i].zero(p) {
			continue
		}
		before := len(b)
		if b = c.fields[i].encode(b, p); len(b) > before {
			b = append(b, ',')
		}
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

func (c *structComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	all := true
	for i := range c.fields {
		if !c.exact && c.unset[i].zero(want) {
			continue
		}
		f := &c.fields[i]
		w, h := unsafe.Add(want, f.offset), unsafe.Add(have, f.offset)
		unwanted := c.unset[i].zero(want) || !f.decided && f.comparer.omitted(w, f.omitEmpty)
		if unwanted && (!c.exact || f.comparer.omitted(h, f.omitEmpty)) {
			continue
		}
		r.enterField(f.name)
		ok := false
		switch {
		case !unwanted:
			ok = f.comparer.covers(r, w, h)
		case r != nil:
			r.record(nil, f.comparer.encode(nil, h))
		}
		r.leave()
		if !ok {
			if r == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// encode appends the field with its name. It appends nothing if the field is left out, which the probe alone may not
// show.
func (f *field) encode(b []byte, object unsafe.Pointer) []byte {
	p := unsafe.Add(object, f.offset)
	if !f.decided && f.comparer.omitted(p, f.omitEmpty) {
		return b
	}
	start := len(b)
	b = append(b, f.quoted...)
	value := len(b)
	b = f.comparer.encode(b, p)
	if _, plain := f.comparer.(*structComparer); plain && len(b) == value+len("{}") {
		return b[:start]
	}
	return b
}
