package compare

import (
	"cmp"
	"reflect"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

// sortedKeys gives a map's keys in order, in room if they fit.
func sortedKeys[K cmp.Ordered, V any](m map[K]V, room []K) []K {
	for k := range m {
		room = append(room, k)
	}
	slices.Sort(room)
	return room
}

// stringMapNode is a map[string]string, by far the most frequent map. An exact one is
// ours as a whole: no key but ours may be there.
type stringMapNode struct{ exact bool }

func (stringMapNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	m := *(*map[string]string)(p)
	return m == nil || omitEmpty && len(m) == 0
}

func (stringMapNode) encode(b []byte, p unsafe.Pointer) []byte {
	m := *(*map[string]string)(p)
	if len(m) > fewEntries {
		return encodeSorted(b, m)
	}
	// Labels and selectors: sorted while they are gathered, each value looked up once.
	var entries [fewEntries]entry
	n := 0
	for k, v := range m {
		at := n
		for ; at > 0 && entries[at-1].key > k; at-- {
			entries[at] = entries[at-1]
		}
		entries[at] = entry{k, v}
		n++
	}
	b = append(b, '{')
	for i := range entries[:n] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, entries[i].key), ':')
		b = appendString(b, entries[i].value)
	}
	return append(b, '}')
}

const fewEntries = 8

type entry struct{ key, value string }

func encodeSorted(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, k := range sortedKeys(m, nil) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendString(b, m[k])
	}
	return append(b, '}')
}

func (n stringMapNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := *(*map[string]string)(want), *(*map[string]string)(have)
	if n.exact && len(w) != len(h) {
		return differs(t, n, want, have)
	}
	if t == nil {
		for k, v := range w {
			if live, ok := h[k]; !ok || live != v {
				return false
			}
		}
		return true
	}
	all := true
	for _, k := range sortedKeys(w, nil) {
		live, ok := h[k]
		if ok && live == w[k] {
			continue
		}
		var encoded []byte
		if ok {
			encoded = appendString(nil, live)
		}
		t.enterItemKey(k)
		all = t.missing(appendString(nil, w[k]), encoded)
		t.leave()
	}
	return all
}

// resourcesNode is a list of compute resources.
type resourcesNode struct{ mapNode }

func (n resourcesNode) encode(b []byte, p unsafe.Pointer) []byte {
	m := *(*corev1.ResourceList)(p)
	var room [16]corev1.ResourceName
	b = append(b, '{')
	for i, k := range sortedKeys(m, room[:0]) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, string(k)), ':')
		q := m[k]
		b = quantityNode{}.encode(b, unsafe.Pointer(&q))
	}
	return append(b, '}')
}

func (n resourcesNode) covers(t *trace, want, have unsafe.Pointer) bool {
	if t != nil {
		return n.mapNode.covers(t, want, have)
	}
	w, h := *(*corev1.ResourceList)(want), *(*corev1.ResourceList)(have)
	if n.exact && len(w) != len(h) {
		return false
	}
	for k, q := range w {
		if live, ok := h[k]; !ok || q.Cmp(live) != 0 {
			return false
		}
	}
	return true
}

// mapNode is any other map with keys that are strings.
type mapNode struct {
	typ   reflect.Type
	elem  node
	exact bool
}

func (n mapNode) at(p unsafe.Pointer) reflect.Value { return reflect.NewAt(n.typ, p).Elem() }

func (n mapNode) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	m := n.at(p)
	return m.IsNil() || omitEmpty && m.Len() == 0
}

func (n mapNode) encode(b []byte, p unsafe.Pointer) []byte {
	m := n.at(p)
	b = append(b, '{')
	for i, k := range n.keys(m) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k.String()), ':')
		b = n.elem.encode(b, addressOf(m.MapIndex(k)))
	}
	return append(b, '}')
}

func (n mapNode) covers(t *trace, want, have unsafe.Pointer) bool {
	w, h := n.at(want), n.at(have)
	if n.exact && w.Len() != h.Len() {
		return differs(t, n, want, have)
	}
	all := true
	for _, k := range n.keys(w) {
		value, live := addressOf(w.MapIndex(k)), h.MapIndex(k)
		t.enterItemKey(k.String())
		var ok bool
		switch {
		case live.IsValid():
			ok = n.elem.covers(t, value, addressOf(live))
		case t != nil:
			t.missing(n.elem.encode(nil, value), nil)
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

func (mapNode) keys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	return keys
}

// addressOf copies a map's value, which has no address of its own.
func addressOf(v reflect.Value) unsafe.Pointer {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.UnsafePointer()
}
