package compare

import (
	"bytes"
	"encoding/base64"
	"unsafe"
)

// sliceHeader is the memory layout of a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// bytesComparer is for []byte, which is base64 in JSON.
type bytesComparer struct{}

func (bytesComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	v := *(*[]byte)(p)
	return v == nil || omitEmpty && len(v) == 0
}

func (bytesComparer) encode(b []byte, p unsafe.Pointer) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), *(*[]byte)(p)), '"')
}

func (c bytesComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	return bytes.Equal(*(*[]byte)(want), *(*[]byte)(have)) || recordValues(r, c, want, have)
}

// listComparer is for atomic lists, which belong to one writer as a whole. Each live item must cover the wanted one; it
// need not be equal, because the API server sets defaults in items.
type listComparer struct {
	elem comparer
	size uintptr
}

func (c listComparer) at(s sliceHeader, i int) unsafe.Pointer {
	return unsafe.Add(s.data, uintptr(i)*c.size)
}

func (listComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	s := (*sliceHeader)(p)
	return s.data == nil || omitEmpty && s.len == 0
}

func (c listComparer) encode(b []byte, p unsafe.Pointer) []byte {
	s := *(*sliceHeader)(p)
	b = append(b, '[')
	for i := range s.len {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.elem.encode(b, c.at(s, i))
	}
	return append(b, ']')
}

func (c listComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
	if w.len != h.len {
		return recordValues(r, c, want, have)
	}
	all := true
	for i := range w.len {
		r.enterIndex(i)
		ok := c.elem.covers(r, c.at(w, i), c.at(h, i))
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

// setComparer is for lists of unique scalars that several writers share.
type setComparer struct{ listComparer }

func (c setComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
next:
	for i := range w.len {
		for j := range h.len {
			if c.elem.covers(nil, c.at(w, i), c.at(h, j)) {
				continue next
			}
		}
		return recordValues(r, c, want, have)
	}
	return true
}

// keyedListComparer is for lists of items with keys that several writers share.
type keyedListComparer struct {
	listComparer
	keys []itemKey
}

// itemKey is a field that identifies an item of a list. fallback is the default of the API server for it, as JSON:
// "TCP" for the protocol of a port.
type itemKey struct {
	field    *field
	fallback []byte
}

func (c keyedListComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
	all, next := true, 0
	for i := range w.len {
		item := c.at(w, i)
		// Wanted items keep their order. Others may be between them.
		at := c.find(item, h, next)
		if at < 0 {
			if r == nil {
				return false
			}
			all = false
			at = c.find(item, h, 0)
		}
		r.enterKeys(c, item)
		if at < 0 {
			r.record(c.elem.encode(nil, item), nil)
		} else {
			if at < next {
				r.record([]byte(`"in order"`), []byte(`"out of order"`))
			}
			all = c.elem.covers(r, item, c.at(h, at)) && all
			next = max(next, at+1)
		}
		r.leave()
		if !all && r == nil {
			return false
		}
	}
	return all
}

func (c keyedListComparer) find(item unsafe.Pointer, in sliceHeader, from int) int {
next:
	for i := from; i < in.len; i++ {
		for k := range c.keys {
			if !c.keys[k].same(item, c.at(in, i)) {
				continue next
			}
		}
		return i
	}
	return -1
}

func (k *itemKey) same(want, have unsafe.Pointer) bool {
	f := k.field
	w, h := unsafe.Add(want, f.offset), unsafe.Add(have, f.offset)
	wantOmitted, haveOmitted := f.comparer.omitted(w, f.omitEmpty), f.comparer.omitted(h, f.omitEmpty)
	switch {
	case wantOmitted && haveOmitted:
		return true
	case wantOmitted:
		return k.isFallback(h)
	case haveOmitted:
		return k.isFallback(w)
	}
	return f.comparer.covers(nil, w, h)
}

func (k *itemKey) isFallback(p unsafe.Pointer) bool {
	if _, text := k.field.comparer.(stringComparer); text { // without encoding, since every port has such a key
		return len(k.fallback) > 2 && *(*string)(p) == string(k.fallback[1:len(k.fallback)-1])
	}
	return k.fallback != nil && bytes.Equal(k.field.comparer.encode(nil, p), k.fallback)
}

// enterKeys enters an item of a list, named by its keys: [containerPort=80,protocol=TCP].
func (r *recorder) enterKeys(n keyedListComparer, item unsafe.Pointer) {
	if r == nil {
		return
	}
	step := []byte{'['}
	for i, k := range n.keys {
		if i > 0 {
			step = append(step, ',')
		}
		step = append(append(step, k.field.name...), '=')
		value := k.fallback
		if p := unsafe.Add(item, k.field.offset); !k.field.comparer.omitted(p, k.field.omitEmpty) {
			value = k.field.comparer.encode(nil, p)
		}
		step = append(step, bytes.Trim(value, `"`)...)
	}
	r.path = append(r.path, string(append(step, ']')))
}
