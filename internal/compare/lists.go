package compare

import (
	"reflect"

	"github.com/opblocks/opblocks/internal/applyschema"
)

func (c *comparison) coversList(at place, want, have reflect.Value) bool {
	if at.atomic || !at.IsAssociative() {
		return c.coversAtomicList(at, want, have)
	}
	item, keys := at.item(), at.Keys()
	all, next := true, 0
	for i := range want.Len() {
		w := indirect(want.Index(i))
		// Wanted items keep their order. Others may be between them. The order of a set does not count.
		found := c.find(item.Schema, keys, w, have, next)
		if found < 0 && next > 0 {
			found = c.find(item.Schema, keys, w, have, 0)
		}
		if found < 0 && len(keys) == 0 && !c.trees {
			return c.record(want, have)
		}
		if c.recorder != nil {
			c.recorder.enterItem(at.ItemName(c.tree(w), !c.trees))
		}
		ok := found >= next
		switch {
		case found < 0:
			ok = c.record(w, reflect.Value{})
		case len(keys) > 0:
			if !ok && c.recorder != nil {
				c.recorder.record(Difference{Want: `"in order"`, Have: `"out of order"`})
			}
			ok = c.covers(item, w, have.Index(found)) && ok
			next = max(next, found+1)
		}
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
}

// coversAtomicList compares lists that belong to one writer as a whole. A live item need not be equal to the wanted one,
// because the API server sets defaults in items.
func (c *comparison) coversAtomicList(at place, want, have reflect.Value) bool {
	if want.Len() != have.Len() {
		return c.record(want, have)
	}
	item := at.item()
	item.atomic = true
	all := true
	for i := range want.Len() {
		c.recorder.enterIndex(i)
		ok := c.covers(item, want.Index(i), have.Index(i))
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
}

// find returns the index of the live item with the same keys, or with the same value if the list is a set. It returns -1
// if there is none from the index from on.
func (c *comparison) find(item applyschema.Schema, keys []string, want, in reflect.Value, from int) int {
	for i := from; i < in.Len(); i++ {
		have := indirect(in.Index(i))
		if len(keys) == 0 && (same(want, have) || applyschema.SameScalar(c.tree(want), c.tree(have), item.IsQuantity())) {
			return i
		}
		all := len(keys) > 0 && (want.Kind() == reflect.Struct || want.Kind() == reflect.Map)
		for _, k := range keys {
			all = all && c.sameKey(item, k, want, have)
		}
		if all {
			return i
		}
	}
	return -1
}

// sameKey reports whether two items have the same value of a key.
func (c *comparison) sameKey(item applyschema.Schema, key string, want, have reflect.Value) bool {
	w, h := field(want, key), field(have, key)
	if w.IsValid() && same(w, h) {
		return true
	}
	return applyschema.SameScalar(item.KeyOr(c.tree(w), key), item.KeyOr(c.tree(h), key), false)
}

// field returns what a struct or a map has of a field. It is the zero Value if there is nothing.
func field(item reflect.Value, name string) reflect.Value {
	switch item.Kind() {
	case reflect.Struct:
		if f := goTypeOf(item.Type()).field(name); f != nil {
			if v := f.of(item); !isUnset(v, f.omitEmpty) {
				return indirect(v)
			}
		}
	case reflect.Map:
		return indirect(item.MapIndex(reflect.ValueOf(name).Convert(item.Type().Key())))
	}
	return reflect.Value{}
}
