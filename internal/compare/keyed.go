package compare

import (
	"bytes"
	"unsafe"
)

// keyedNode is a list of items with keys, which several writers share.
type keyedNode struct {
	sliceNode
	keys []key
}

// key is a field that tells items apart; fallback is what the API server reads into
// one that is not set, as JSON (a port's protocol: "TCP").
type key struct {
	field    *field
	fallback []byte
}

func (n keyedNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := *(*sliceHeader)(want), *(*sliceHeader)(have)
	all, next := true, 0
	for i := range w.len {
		item := n.at(w, i)
		// Our items keep our order. Others may stand between them.
		at := n.find(item, h, next)
		if at < 0 {
			if t == nil {
				return false
			}
			all = false
			at = n.find(item, h, 0)
		}
		t.enterKeyed(n, item)
		if at < 0 {
			t.missing(n.elem.encode(nil, item), nil)
		} else {
			if at < next {
				t.missing([]byte(`"in order"`), []byte(`"out of order"`))
			}
			all = n.elem.covers(t, item, n.at(h, at)) && all
			next = max(next, at+1)
		}
		t.leave()
		if !all && t == nil {
			return false
		}
	}
	return all
}

func (n keyedNode) find(item unsafe.Pointer, in sliceHeader, from int) int {
next:
	for i := from; i < in.len; i++ {
		for k := range n.keys {
			if !n.keys[k].same(item, n.at(in, i)) {
				continue next
			}
		}
		return i
	}
	return -1
}

func (k *key) same(want, have unsafe.Pointer) bool {
	f := k.field
	w, h := unsafe.Add(want, f.offset), unsafe.Add(have, f.offset)
	wantOmitted, haveOmitted := f.node.omitted(w, f.omitEmpty), f.node.omitted(h, f.omitEmpty)
	switch {
	case wantOmitted && haveOmitted:
		return true
	case wantOmitted:
		return k.isFallback(h)
	case haveOmitted:
		return k.isFallback(w)
	}
	return f.node.covers(nil, w, h)
}

func (k *key) isFallback(p unsafe.Pointer) bool {
	if _, text := k.field.node.(stringNode); text { // without encoding, as this is every port's
		return len(k.fallback) > 2 && *(*string)(p) == string(k.fallback[1:len(k.fallback)-1])
	}
	return k.fallback != nil && bytes.Equal(k.field.node.encode(nil, p), k.fallback)
}

// enterKeyed names an item by its keys: [containerPort=80,protocol=TCP].
func (t *trace) enterKeyed(n keyedNode, item unsafe.Pointer) {
	if t == nil {
		return
	}
	step := []byte{'['}
	for i, k := range n.keys {
		if i > 0 {
			step = append(step, ',')
		}
		step = append(append(step, k.field.name...), '=')
		value := k.fallback
		if p := unsafe.Add(item, k.field.offset); !k.field.node.omitted(p, k.field.omitEmpty) {
			value = k.field.node.encode(nil, p)
		}
		step = append(step, bytes.Trim(value, `"`)...)
	}
	t.path = append(t.path, string(append(step, ']')))
}
