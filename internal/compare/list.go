package compare

import (
	"bytes"
	"encoding/base64"
	"unsafe"
)

// sliceHeader is how Go lays out a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// bytesNode is a []byte: base64 in JSON.
type bytesNode struct{}

func (bytesNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	v := *(*[]byte)(p)
	return v == nil || omitEmpty && len(v) == 0
}

func (bytesNode) encode(b []byte, p unsafe.Pointer) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), *(*[]byte)(p)), '"')
}

func (n bytesNode) covers(t *trace, want, have unsafe.Pointer) bool {
	return bytes.Equal(*(*[]byte)(want), *(*[]byte)(have)) || differs(t, n, want, have)
}

// sliceNode is an atomic list: it is ours as a whole. Its items are covered one by
// one and not compared, because the API server sets defaults in them.
type sliceNode struct {
	elem node
	size uintptr
}

func (n sliceNode) at(s sliceHeader, i int) unsafe.Pointer {
	return unsafe.Add(s.data, uintptr(i)*n.size)
}

func (sliceNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	s := (*sliceHeader)(p)
	return s.data == nil || omitEmpty && s.len == 0
}

func (n sliceNode) encode(b []byte, p unsafe.Pointer) []byte {
	s := *(*sliceHeader)(p)
	b = append(b, '[')
	for i := range s.len {
		if i > 0 {
			b = append(b, ',')
		}
		b = n.elem.encode(b, n.at(s, i))
	}
	return append(b, ']')
}

func (n sliceNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
	if w.len != h.len {
		return differs(t, n, want, have)
	}
	all := true
	for i := range w.len {
		t.enterItem(i)
		ok := n.elem.covers(t, n.at(w, i), n.at(h, i))
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

// setNode is a list of unique scalars that several writers share.
type setNode struct{ sliceNode }

func (n setNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
next:
	for i := range w.len {
		for j := range h.len {
			if n.elem.covers(nil, n.at(w, i), n.at(h, j)) {
				continue next
			}
		}
		return differs(t, n, want, have)
	}
	return true
}
