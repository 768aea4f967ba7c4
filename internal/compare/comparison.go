package compare

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// comparison walks over a wanted value and a live value in step. Both are Go values of one type, or both are trees (decoded JSON). The
// methods of the walk return true if the walk is to go on.
type comparison struct {
	trees bool // both values are trees
	raw   bool // the values are trees of raw JSON, which has no schema
	nulls bool // nulls are compared: in trees, or in the raw JSON of Go values
	// collects makes the walk collect all differences and their paths. Without it, the walk stops at the first
	// difference.
	collects  bool
	different bool
	found     []Difference
	build     treeBuilder // collects the error of a value without a JSON form
}

// compare compares a wanted and a live value. It returns true if the walk is to go on.
func (c *comparison) compare(at place, want, have reflect.Value) bool {
	want, have = indirect(want), indirect(have)
	if same(want, have) {
		return true
	}
	if !want.IsValid() {
		return c.differs(at, want, have)
	}
	form := byKind
	if !c.trees {
		form = goTypeOf(want.Type()).form
	}
	switch kind := want.Kind(); {
	case form == opaque: // only encoding/json knows how such a value is encoded, so the encoded values are compared
		raw := comparison{trees: true, raw: true, nulls: true}
		raw.compare(place{atomic: at.atomic || at.schema.IsAtomicMap()}, c.rawTree(want), c.rawTree(have))
		return !raw.different || c.differs(at, want, have)
	case kind == reflect.Struct && form == byKind && have.IsValid() && have.Type() == want.Type():
		return c.compareStructs(at, want, have)
	case kind == reflect.Map && have.Kind() == reflect.Map:
		return c.compareMaps(at, want, have)
	case kind == reflect.Slice && !isBytes(want):
		if !have.IsValid() { // the live value is null
			have = reflect.ValueOf([]any{})
		}
		if have.Kind() == reflect.Slice {
			return c.compareLists(at, want, have)
		}
	case applyschema.SameScalar(c.tree(want), c.tree(have), c.trees && at.schema.IsQuantity()):
		return true
	}
	return c.differs(at, want, have)
}

// same reports whether two values of one type are scalars and equal.
func same(a, b reflect.Value) bool {
	switch {
	case !a.IsValid() || !b.IsValid():
		return a.IsValid() == b.IsValid()
	case a.Type() != b.Type():
		return false
	case a.Kind() <= reflect.Float64 || a.Kind() == reflect.String:
		return a.Equal(b)
	case isBytes(a):
		return bytes.Equal(a.Bytes(), b.Bytes())
	case a.Type() == quantityType:
		x, _ := reflect.TypeAssert[resource.Quantity](a)
		y, _ := reflect.TypeAssert[resource.Quantity](b)
		return x.Cmp(y) == 0
	}
	return false
}

func isBytes(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

// indirect returns the value to which pointers and interfaces lead.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// tree returns a value as a tree (decoded JSON), or nil if it has no JSON form.
func (c *comparison) tree(v reflect.Value) any {
	switch {
	case !v.IsValid():
		return nil
	case c.trees:
		return copied(v.Interface(), c.nulls)
	}
	return c.build.tree(v)
}

// rawTree returns a Go value as a tree (decoded JSON), with the nulls in its raw JSON.
func (c *comparison) rawTree(v reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	build := treeBuilder{nulls: c.nulls}
	tree := build.tree(v)
	c.build.err = cmp.Or(c.build.err, build.err)
	return reflect.ValueOf(tree)
}

// compareStructs compares two structs of one type.
func (c *comparison) compareStructs(at place, want, have reflect.Value) bool {
	exact := at.schema.IsSelector()
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
			w = reflect.Value{} // want does not set the field, and have must not have it either
		case same(w, h):
			continue
		case goTypeOf(f.typ).form == opaque && c.tree(w) == nil: // the value would be sent as null, which is not sent
			continue
		}
		if !c.compare(at.below(f.name, false), w, h) {
			return false
		}
	}
	return true
}

// compareMaps compares two maps. In trees, they may be the fields of a struct.
func (c *comparison) compareMaps(at place, want, have reflect.Value) bool {
	isStruct := c.raw || c.trees && at.schema.HasFields()
	atomic := at.atomic || at.schema.IsAtomicMap()
	if (atomic && !isStruct || c.trees && at.schema.IsSelector()) && at.countSet(want) != at.countSet(have) {
		return c.differs(at, want, have)
	}
	keys := want.MapKeys()
	if c.collects {
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	}
	for _, k := range keys {
		w, name := indirect(want.MapIndex(k)), k.String()
		if c.trees && !w.IsValid() && !c.raw && !at.schema.Child(name).TakesNull() || slices.Contains(at.serverOwned, name) {
			continue // the null is not sent, or it is not known whether the API server stores it
		}
		h := have.MapIndex(k.Convert(have.Type().Key()))
		if h.IsValid() && same(w, indirect(h)) {
			continue
		}
		below := at.below(name, !isStruct && (!c.trees || at.schema.IsMap()))
		var more bool
		switch {
		case c.trees && !w.IsValid():
			more = c.compareNull(below, indirect(h))
		case h.Kind() == reflect.String: // not left to differs, which treats an empty live string as absent
			more = c.record(below, Difference{Want: c.text(w), Have: c.text(h)})
		case h.IsValid():
			more = c.compare(below, w, h)
		default:
			more = below.dropsEmpty && isEmpty(c.tree(w)) || c.differs(below, w, h)
		}
		if !more {
			return false
		}
	}
	return true
}

// compareNull compares a live value with a wanted null. If server-side apply merges a live map or list, it treats the null as an empty one,
// so entries that others have added stay.
func (c *comparison) compareNull(at place, have reflect.Value) bool {
	switch have.Kind() {
	case reflect.Map:
		if have.Len() > 0 && !at.atomic && !at.schema.IsAtomicMap() {
			return true
		}
	case reflect.Slice:
		if have.Len() > 0 && !at.atomic && at.schema.IsAssociative() {
			return true
		}
	}
	d := Difference{Want: "null"}
	if c.collects && have.IsValid() {
		d.Have = c.text(have)
	}
	return c.record(at, d)
}

// countSet returns the number of keys of a map. It does not count a key whose value is a null that is not sent.
func (at place) countSet(m reflect.Value) (n int) {
	for i := m.MapRange(); i.Next(); {
		if v := i.Value(); v.Kind() != reflect.Interface || !v.IsNil() || at.schema.Child(i.Key().String()).TakesNull() {
			n++
		}
	}
	return n
}

// isEmpty reports whether encoding/json takes a value of a tree for empty (omitempty).
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case bool:
		return !v
	}
	return v == "" || applyschema.SameScalar(v, int64(0), false)
}
