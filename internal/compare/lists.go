package compare

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// compareLists compares two lists: item by item with the same keys, as sets, or as a whole.
func (c *comparison) compareLists(at place, want, have reflect.Value) bool {
	if at.atomic || !at.schema.IsAssociative() {
		return c.compareAtomicLists(at, want, have)
	}
	item, keys, next := at.item(), at.schema.Keys(), 0
	for i := range want.Len() {
		w := indirect(want.Index(i))
		// The live items must have the wanted order, except in a set. Items of others may be between them.
		found := c.find(item.schema, keys, w, have, next)
		if found < 0 && next > 0 {
			found = c.find(item.schema, keys, w, have, 0)
		}
		if found < 0 && len(keys) == 0 && !c.trees {
			return c.differs(at, want, have)
		}
		if c.collects {
			name := reflect.ValueOf(at.schema.ItemName(c.tree(w), !c.trees))
			item.path = at.path.Item(strings.Trim(c.text(name), `"`)) // text escapes the name
		}
		switch {
		case found < 0:
			if !c.differs(item, w, reflect.Value{}) {
				return false
			}
		case len(keys) > 0:
			if found < next && !c.record(item, Difference{Want: `"in order"`, Have: `"out of order"`}) {
				return false
			}
			if !c.compare(item, w, have.Index(found)) {
				return false
			}
			next = max(next, found+1)
		}
	}
	return true
}

// compareAtomicLists compares lists that server-side apply replaces as a whole. A live item need not be equal to the wanted one, because
// the API server sets defaults in items.
func (c *comparison) compareAtomicLists(at place, want, have reflect.Value) bool {
	if want.Len() != have.Len() {
		return c.differs(at, want, have)
	}
	item := at.item()
	for i := range want.Len() {
		if c.collects {
			item.path = at.path.Item(strconv.Itoa(i))
		}
		if !c.compare(item, want.Index(i), have.Index(i)) {
			return false
		}
	}
	return true
}

// find returns the index of the first live item with the same keys, or with the same value if the list is a set. It looks only at the items
// at the index from and later. If there is none, it returns -1.
func (c *comparison) find(item applyschema.Schema, keys []string, want, in reflect.Value, from int) int {
	for i := from; i < in.Len(); i++ {
		have := indirect(in.Index(i))
		found := want.Kind() == reflect.Struct || want.Kind() == reflect.Map
		if len(keys) == 0 {
			found = same(want, have) || applyschema.SameScalar(c.tree(want), c.tree(have), item.IsQuantity())
		}
		for _, k := range keys {
			found = found && c.sameKey(item, k, want, have)
		}
		if found {
			return i
		}
	}
	return -1
}

// sameKey reports whether two items have the same value of a key.
func (c *comparison) sameKey(item applyschema.Schema, key string, want, have reflect.Value) bool {
	w, h := field(want, key), field(have, key)
	return w.IsValid() && same(w, h) ||
		applyschema.SameScalar(item.KeyOr(c.tree(w), key), item.KeyOr(c.tree(h), key), false)
}

// field returns the value of the field with this name in a struct or in a map. If the field is not set, it returns the zero Value.
func field(item reflect.Value, name string) (value reflect.Value) {
	switch item.Kind() {
	case reflect.Struct:
		f := goTypeOf(item.Type()).field(name)
		if f == nil || isUnset(f.of(item), f.omitEmpty) {
			return reflect.Value{}
		}
		value = f.of(item)
	case reflect.Map:
		value = item.MapIndex(reflect.ValueOf(name).Convert(item.Type().Key()))
	}
	return indirect(value)
}
