package compare

import "unsafe"

// comparer serialises and compares the values of one Go type, at one place of the API's schema. Values are passed by
// address.
type comparer interface {
	// omitted reports whether a struct leaves out a field with this value. omitEmpty is the option of the field's tag.
	omitted(p unsafe.Pointer, omitEmpty bool) bool
	// encode appends the value to b as JSON.
	encode(b []byte, p unsafe.Pointer) []byte
	// covers reports whether have has all that encode writes for want. It stops at the first difference if r is nil, and
	// records all differences otherwise.
	covers(t *recorder, want, have unsafe.Pointer) bool
}

// recordValues records a live value that does not cover the wanted one, unless r is nil. It always returns false, the
// result of covers.
func recordValues(r *recorder, c comparer, want, have unsafe.Pointer) bool {
	if r == nil {
		return false
	}
	var live []byte
	if !c.omitted(have, true) {
		live = c.encode(nil, have)
	}
	return r.record(c.encode(nil, want), live)
}

// pointerComparer is for pointers. Nothing is wanted of a nil pointer; a pointer to zero wants a zero.
type pointerComparer struct{ elem comparer }

func (pointerComparer) omitted(p unsafe.Pointer, _ bool) bool { return *(*unsafe.Pointer)(p) == nil }

func (c pointerComparer) encode(b []byte, p unsafe.Pointer) []byte {
	target := *(*unsafe.Pointer)(p)
	if target == nil {
		return append(b, "null"...)
	}
	return c.elem.encode(b, target)
}

func (c pointerComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := *(*unsafe.Pointer)(want), *(*unsafe.Pointer)(have)
	switch {
	case w == nil || w == h:
		return true
	case h == nil:
		return recordValues(r, c, want, have)
	}
	return c.elem.covers(r, w, h)
}
