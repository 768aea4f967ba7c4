package compare

import (
	"maps"
	"reflect"
	"slices"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// comparison is a walk over the tree of a wanted value and over a live value. The live value is a Go value or a tree.
type comparison struct {
	recorder *recorder // nil: the walk stops at the first difference
	untyped  bool      // the wanted object is unstructured
	plain    bool      // the live value is a tree
	raw      bool      // both are raw JSON, which has no schema
}

// place is what is known of two values that are compared.
type place struct {
	applyschema.Schema
	goType reflect.Type // the API server's type, if the live value is a tree and the type is known
	atomic bool         // they are inside an atomic value, which belongs to one writer as a whole
}

// covers reports whether have has all of want.
func (c *comparison) covers(at place, want any, have reflect.Value) bool {
	have = c.indirect(have)
	if have.IsValid() && !c.plain && goTypeOf(have.Type()).form == opaque {
		return c.coversOpaque(want, have)
	}
	switch want := want.(type) {
	case map[string]any:
		if have.Kind() == reflect.Struct || have.Kind() == reflect.Map {
			return c.coversFields(at, want, have)
		}
	case []any:
		if !have.IsValid() { // null
			have = reflect.ValueOf([]any{})
		}
		if have.Kind() == reflect.Slice {
			return c.coversList(at, want, have)
		}
	default:
		if applyschema.SameScalar(want, c.tree(have), c.plain && at.IsQuantity() || have.IsValid() && have.Type() == quantityType) {
			return true
		}
	}
	return c.record(want, have)
}

// indirect returns what a pointer or an interface of a tree holds.
func (c *comparison) indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || c.plain && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// tree returns a live value as a tree. A value without a JSON form is nil, which covers nothing.
func (c *comparison) tree(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	if c.plain {
		return withoutNulls(v.Interface())
	}
	var build treeBuilder
	return build.tree(v)
}

func (c *comparison) coversOpaque(want any, have reflect.Value) bool {
	raw := comparison{plain: true, raw: true}
	return raw.covers(place{}, want, reflect.ValueOf(c.tree(have))) || c.record(want, have)
}

// record records a live value that does not cover the wanted one. It always returns false, the result of covers.
func (c *comparison) record(want any, have reflect.Value) bool {
	if c.recorder == nil {
		return false
	}
	var d Difference
	if want != nil {
		d.Want = text(want)
	}
	// A zero of a Go struct is no value. That of a map, which has no address, is one.
	if live := c.tree(have); live != nil && !(have.CanAddr() && isUnset(have, true)) {
		d.Have = text(live)
	}
	return c.recorder.record(d)
}

// coversFields compares structs and maps.
func (c *comparison) coversFields(at place, want map[string]any, have reflect.Value) bool {
	isStruct := have.Kind() == reflect.Struct || c.raw || c.plain && at.HasFields()
	at.atomic = at.atomic || at.IsAtomicMap()
	if (at.atomic && !isStruct || at.IsSelector() && c.plain) && len(want) != countSet(have) {
		return c.record(want, have)
	}
	if at.IsSelector() && !c.plain {
		want = c.withUnwanted(want, have)
	}
	all := true
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if isStruct || c.plain && !at.IsMap() {
			c.recorder.enterField(k)
		} else {
			c.recorder.enterMapKey(k)
		}
		below, dropsEmpty := at.below(k)
		live, _ := c.field(have, k)
		var ok bool
		if live.IsValid() {
			ok = c.covers(below, want[k], live)
		} else {
			ok = dropsEmpty && isEmpty(want[k]) || c.record(want[k], live)
		}
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
}

// withUnwanted returns a copy of want that has a null for what only have has.
func (c *comparison) withUnwanted(want map[string]any, have reflect.Value) map[string]any {
	live, _ := c.tree(have).(map[string]any)
	both := make(map[string]any, len(want))
	for k := range live {
		both[k] = nil
	}
	maps.Copy(both, want)
	return both
}

// field returns a field of a struct or a value of a map, and whether it is set. A field that is not set has a value too.
func (c *comparison) field(v reflect.Value, name string) (value reflect.Value, set bool) {
	switch v.Kind() {
	case reflect.Struct:
		if f := goTypeOf(v.Type()).field(name); f != nil {
			value = v.FieldByIndex(f.index)
			return value, !isUnset(value, f.omitEmpty)
		}
	case reflect.Map:
		value = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
	}
	return value, value.IsValid()
}

// below returns the place of a field or of a map's value. It reports whether the API server drops the field if it is
// empty: there it is no pointer, so that an empty value is the same as none.
func (at place) below(name string) (below place, dropsEmpty bool) {
	below = place{Schema: at.Child(name), atomic: at.atomic}
	switch t := elemOf(at.goType); {
	case t == nil:
	case t.Kind() == reflect.Map:
		below.goType = t.Elem()
	case t.Kind() == reflect.Struct:
		if f := goTypeOf(t).field(name); f != nil {
			kind := f.typ.Kind()
			below.goType = f.typ
			dropsEmpty = f.omitEmpty && kind != reflect.Pointer && kind != reflect.Interface && kind != reflect.Struct
		}
	}
	return below, dropsEmpty
}

// item returns the place of a list's items.
func (at place) item() place {
	item := place{Schema: at.Element(), atomic: at.atomic || !at.IsAssociative()}
	if t := elemOf(at.goType); t != nil && t.Kind() == reflect.Slice {
		item.goType = t.Elem()
	}
	return item
}

func elemOf(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func (c *comparison) coversList(at place, want []any, have reflect.Value) bool {
	if at.atomic || !at.IsAssociative() {
		return c.coversAtomicList(at, want, have)
	}
	item, keys := at.item(), at.Keys()
	all, next := true, 0
	for _, w := range want {
		// Wanted items keep their order. Others may be between them. The order of a set does not count.
		found := c.find(item.Schema, keys, w, have, next)
		if found < 0 && next > 0 {
			found = c.find(item.Schema, keys, w, have, 0)
		}
		if found < 0 && len(keys) == 0 && !c.untyped {
			return c.record(want, have)
		}
		c.recorder.enterItem(at.Schema, w, !c.untyped)
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
func (c *comparison) coversAtomicList(at place, want []any, have reflect.Value) bool {
	if len(want) != have.Len() {
		return c.record(want, have)
	}
	item := at.item()
	item.atomic = true
	all := true
	for i, w := range want {
		c.recorder.enterIndex(i)
		ok := c.covers(item, w, have.Index(i))
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
}

// find returns the index of the live item with the same keys, or with the same value if the list is a set. It returns -1
// if there is none from the index from on.
func (c *comparison) find(item applyschema.Schema, keys []string, want any, in reflect.Value, from int) int {
	wanted, isMap := want.(map[string]any)
	for i := from; i < in.Len(); i++ {
		live := c.indirect(in.Index(i))
		if len(keys) == 0 && applyschema.SameScalar(want, c.tree(live), item.IsQuantity()) {
			return i
		}
		same := isMap && len(keys) > 0
		for _, k := range keys {
			same = same && applyschema.SameScalar(item.KeyOr(wanted[k], k), item.KeyOr(c.key(live, k), k), false)
		}
		if same {
			return i
		}
	}
	return -1
}

// key returns the value of a key in a live item, or nil.
func (c *comparison) key(item reflect.Value, name string) any {
	if value, set := c.field(item, name); set {
		return c.tree(c.indirect(value))
	}
	return nil
}

// countSet returns the number of keys of a map, without those that are null.
func countSet(m reflect.Value) (n int) {
	for i := m.MapRange(); i.Next(); {
		if v := i.Value(); v.Kind() != reflect.Interface || !v.IsNil() {
			n++
		}
	}
	return n
}

// isEmpty reports whether encoding/json takes a value of a tree for empty.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == "" || v == false || applyschema.SameScalar(v, int64(0), false)
}

// text returns a tree as JSON.
func text(tree any) string {
	b, err := appendJSON(nil, tree)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
