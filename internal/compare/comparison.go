package compare

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// comparison is a walk over a wanted and a live value. Both are Go values of one type, or both are trees.
type comparison struct {
	recorder *recorder   // nil: the walk stops at the first difference
	build    treeBuilder // has the error of a value without a JSON form
	trees    bool        // the values are trees
	raw      bool        // the values are trees of raw JSON, which has no schema
}

// covers reports whether have has all of want.
func (c *comparison) covers(at place, want, have reflect.Value) bool {
	want, have = indirect(want), indirect(have)
	if same(want, have) {
		return true
	}
	if !want.IsValid() {
		return c.record(want, have)
	}
	form := byKind
	if !c.trees {
		form = goTypeOf(want.Type()).form
	}
	switch kind := want.Kind(); {
	case form == opaque:
		return c.coversOpaque(want, have)
	case form == byKind && kind == reflect.Struct && have.IsValid():
		return c.coversStruct(at, want, have)
	case kind == reflect.Map && have.Kind() == reflect.Map:
		return c.coversMap(at, want, have)
	case kind == reflect.Slice && !isBytes(want):
		if !have.IsValid() { // null
			have = reflect.ValueOf([]any{})
		}
		if have.Kind() == reflect.Slice {
			return c.coversList(at, want, have)
		}
	case applyschema.SameScalar(c.tree(want), c.tree(have), c.trees && at.IsQuantity()):
		return true
	}
	return c.record(want, have)
}

// same reports whether two values of one type are equal. It returns false for types that few fields have.
func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Slice:
		return isBytes(a) && bytes.Equal(a.Bytes(), b.Bytes())
	case reflect.Struct:
		if a.Type() == quantityType {
			x, _ := reflect.TypeAssert[resource.Quantity](a)
			y, _ := reflect.TypeAssert[resource.Quantity](b)
			return x.Cmp(y) == 0
		}
	}
	return false
}

func isBytes(v reflect.Value) bool { return v.Type().Elem().Kind() == reflect.Uint8 }

// indirect returns what pointers and interfaces hold.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// tree returns a value as a tree. A value without a JSON form is nil, which covers nothing.
func (c *comparison) tree(v reflect.Value) any {
	switch {
	case !v.IsValid():
		return nil
	case c.trees:
		return withoutNulls(v.Interface())
	}
	return c.build.tree(v)
}

// coversOpaque compares values that only encoding/json can encode.
func (c *comparison) coversOpaque(want, have reflect.Value) bool {
	raw := comparison{trees: true, raw: true}
	return raw.covers(place{}, reflect.ValueOf(c.tree(want)), reflect.ValueOf(c.tree(have))) || c.record(want, have)
}

// record records a live value that does not cover the wanted one. It always returns false, the result of covers.
func (c *comparison) record(want, have reflect.Value) bool {
	if c.recorder == nil {
		return false
	}
	var d Difference
	if want.IsValid() {
		d.Want = text(c.tree(want))
	}
	// A zero of a Go struct is no value. That of a map, which has no address, is one.
	if live := c.tree(have); live != nil && !(have.CanAddr() && isUnset(have, true)) {
		d.Have = text(live)
	}
	return c.recorder.record(d)
}

// coversStruct compares two structs of one type.
func (c *comparison) coversStruct(at place, want, have reflect.Value) bool {
	exact := at.IsSelector()
	at.atomic = at.atomic || at.IsAtomicMap()
	all := true
	fields := goTypeOf(want.Type()).fields
	for i := range fields {
		f := &fields[i]
		w, h := f.of(want), f.of(have)
		switch {
		case slices.Contains(at.serverOwned, f.name):
			continue
		case isUnset(w, f.omitEmpty):
			if !exact || isUnset(h, f.omitEmpty) {
				continue
			}
			w = reflect.Value{} // nothing is wanted
		case same(w, h) || f.form == opaque && c.tree(w) == nil: // a null is not sent
			continue
		}
		c.recorder.enterField(f.name)
		ok := c.covers(at.below(f.name), w, h)
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
}

// coversMap compares two maps. In a tree, they may be the fields of a struct.
func (c *comparison) coversMap(at place, want, have reflect.Value) bool {
	isStruct := c.raw || c.trees && at.HasFields()
	at.atomic = at.atomic || at.IsAtomicMap()
	if (at.atomic && !isStruct || c.trees && at.IsSelector()) && countSet(want) != countSet(have) {
		return c.record(want, have)
	}
	keys := want.MapKeys()
	if c.recorder != nil {
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	}
	all := true
	for _, k := range keys {
		w, name := indirect(want.MapIndex(k)), k.String()
		if c.trees && !w.IsValid() || slices.Contains(at.serverOwned, name) {
			continue // not sent
		}
		h := have.MapIndex(k.Convert(have.Type().Key()))
		if h.IsValid() && same(w, indirect(h)) {
			continue
		}
		if isStruct || c.trees && !at.IsMap() {
			c.recorder.enterField(name)
		} else {
			c.recorder.enterMapKey(name)
		}
		var ok bool
		switch {
		case h.IsValid():
			ok = c.covers(at.below(name), w, h)
		case at.dropsEmpty(name) && isEmpty(c.tree(w)):
			ok = true
		default:
			ok = c.record(w, h)
		}
		c.recorder.leave()
		if all = all && ok; !all && c.recorder == nil {
			return false
		}
	}
	return all
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
