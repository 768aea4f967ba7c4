package compare

import (
	"cmp"
	"reflect"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

// sortedKeys returns the keys of a map, sorted. It uses the capacity of room, if that is enough.
func sortedKeys[K cmp.Ordered, V any](m map[K]V, room []K) []K {
	for k := range m {
		room = append(room, k)
	}
	slices.Sort(room)
	return room
}

// stringMapComparer is for map[string]string, by far the most frequent map. If exact, the map is atomic: the live map
// may have no other keys.
type stringMapComparer struct{ exact bool }

func (stringMapComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	m := *(*map[string]string)(p)
	return m == nil || omitEmpty && len(m) == 0
}

func (stringMapComparer) encode(b []byte, p unsafe.Pointer) []byte {
	m := *(*map[string]string)(p)
	if len(m) > fewEntries {
		return encodeSorted(b, m)
	}
	// Labels and selectors are small: insertion sort looks up each value once and allocates nothing.
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

func (c stringMapComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := *(*map[string]string)(want), *(*map[string]string)(have)
	if c.exact && len(w) != len(h) {
		return recordValues(r, c, want, have)
	}
	if r == nil {
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
		r.enterMapKey(k)
		all = r.record(appendString(nil, w[k]), encoded)
		r.leave()
	}
	return all
}

// resourceListComparer is for corev1.ResourceList: a mapComparer that allocates nothing.
type resourceListComparer struct{ mapComparer }

func (c resourceListComparer) encode(b []byte, p unsafe.Pointer) []byte {
	m := *(*corev1.ResourceList)(p)
	var room [16]corev1.ResourceName
	b = append(b, '{')
	for i, k := range sortedKeys(m, room[:0]) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, string(k)), ':')
		q := m[k]
		b = quantityComparer{}.encode(b, unsafe.Pointer(&q))
	}
	return append(b, '}')
}

func (c resourceListComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	if r != nil {
		return c.mapComparer.covers(r, want, have)
	}
	w, h := *(*corev1.ResourceList)(want), *(*corev1.ResourceList)(have)
	if c.exact && len(w) != len(h) {
		return false
	}
	for k, q := range w {
		if live, ok := h[k]; !ok || q.Cmp(live) != 0 {
			return false
		}
	}
	return true
}

// mapComparer is for all other maps whose keys are strings.
type mapComparer struct {
	typ   reflect.Type
	elem  comparer
	exact bool
}

func (c mapComparer) at(p unsafe.Pointer) reflect.Value { return reflect.NewAt(c.typ, p).Elem() }

func (c mapComparer) omitted(p unsafe.Pointer, omitEmpty bool) bool {
	m := c.at(p)
	return m.IsNil() || omitEmpty && m.Len() == 0
}

func (c mapComparer) encode(b []byte, p unsafe.Pointer) []byte {
	m := c.at(p)
	b = append(b, '{')
	for i, k := range c.keys(m) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k.String()), ':')
		b = c.elem.encode(b, addressOf(m.MapIndex(k)))
	}
	return append(b, '}')
}

func (c mapComparer) covers(r *recorder, want, have unsafe.Pointer) bool {
	w, h := c.at(want), c.at(have)
	if c.exact && w.Len() != h.Len() {
		return recordValues(r, c, want, have)
	}
	all := true
	for _, k := range c.keys(w) {
		value, live := addressOf(w.MapIndex(k)), h.MapIndex(k)
		r.enterMapKey(k.String())
		var ok bool
		switch {
		case live.IsValid():
			ok = c.elem.covers(r, value, addressOf(live))
		case r != nil:
			r.record(c.elem.encode(nil, value), nil)
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

func (mapComparer) keys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	return keys
}

// addressOf returns the address of a copy: the values of a map have no address.
func addressOf(v reflect.Value) unsafe.Pointer {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.UnsafePointer()
}
