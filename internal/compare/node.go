package compare

import "unsafe"

// node is the plan of one value, which it is given by address.
type node interface {
	// omitted reports whether a struct leaves this field out when it is serialised.
	omitted(p unsafe.Pointer, omitEmpty bool) bool
	// encode appends the value as JSON.
	encode(b []byte, p unsafe.Pointer) []byte
	// covers reports whether all that encode gives of want is in have.
	covers(t *trace, want, have unsafe.Pointer) bool
}

// differs notes two values of which the live one does not cover the wanted one; it gives false.
func differs(t *trace, n node, want, have unsafe.Pointer) bool {
	if t == nil {
		return false
	}
	var live []byte
	if !n.omitted(have, true) {
		live = n.encode(nil, have)
	}
	return t.missing(n.encode(nil, want), live)
}

// pointerNode is a pointer; nil means no opinion, and a pointer to zero is an opinion.
type pointerNode struct{ elem node }

func (pointerNode) omitted(p unsafe.Pointer, _ bool) bool { return *(*unsafe.Pointer)(p) == nil }

func (n pointerNode) encode(b []byte, p unsafe.Pointer) []byte {
	target := *(*unsafe.Pointer)(p)
	if target == nil {
		return append(b, "null"...)
	}
	return n.elem.encode(b, target)
}

func (n pointerNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := *(*unsafe.Pointer)(want), *(*unsafe.Pointer)(have)
	switch {
	case w == nil || w == h:
		return true
	case h == nil:
		return differs(t, n, want, have)
	}
	return n.elem.covers(t, w, h)
}
