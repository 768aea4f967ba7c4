package applyschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// ItemName returns an item's keys as they are written in paths: containerPort=80,protocol=TCP. If defaults is true, a key that
// is not set has the API server's default.
func (r Schema) ItemName(item any, defaults bool) string {
	fields, _ := item.(map[string]any)
	var keys []string
	for _, k := range r.Keys() {
		value := fields[k]
		if defaults {
			value = r.Element().KeyOr(value, k)
		}
		if value != nil || !defaults {
			keys = append(keys, k+"="+ScalarText(value))
		}
	}
	return strings.Join(keys, ",")
}

// finder returns a function that looks for an item in a list. The function returns the index of the first item with the same
// keys, or with the same value if the list is a set. If it finds no such item, it returns -1.
func (r Schema) finder(in []any) func(item any) int {
	if len(r.Keys()) == 0 && r.Element().IsQuantity() {
		return func(item any) int {
			return slices.IndexFunc(in, func(other any) bool { return SameScalar(item, other, true) })
		}
	}
	first := make(map[string]int, len(in)) // whoever writes a custom resource may make lists long
	for i, item := range slices.Backward(in) {
		if identity, ok := r.identity(item); ok {
			first[identity] = i
		}
	}
	return func(item any) int {
		if identity, ok := r.identity(item); ok {
			if i, found := first[identity]; found {
				return i
			}
		}
		return -1
	}
}

// identity returns a text for an item of the list. Two items have the same text if and only if they have the same keys, or the
// same value if the list is a set. If an item cannot equal another one, identity returns false.
func (r Schema) identity(item any) (text string, ok bool) {
	keys := r.Keys()
	if len(keys) == 0 {
		return scalarIdentity(item)
	}
	fields, isMap := item.(map[string]any)
	if !isMap {
		return "", false
	}
	var all strings.Builder
	for _, k := range keys {
		one, ok := scalarIdentity(r.Element().KeyOr(fields[k], k))
		if !ok {
			return "", false
		}
		fmt.Fprintf(&all, "%d:%s", len(one), one)
	}
	return all.String(), true
}

// scalarIdentity returns a text that two scalars have in common if and only if [SameScalar] finds them the same.
func scalarIdentity(v any) (text string, ok bool) {
	switch v := v.(type) {
	case map[string]any, []any:
		return "", false
	case string:
		return "text " + v, true
	}
	text = ScalarText(v)
	if isNumber(v) {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return "number " + strconv.FormatInt(i, 10), true
		}
		f, err := strconv.ParseFloat(text, 64)
		if err == nil && math.Abs(f) < 1<<63 && f == math.Trunc(f) {
			return "number " + strconv.FormatInt(int64(f), 10), true
		}
		return fmt.Sprint("number ", f), err == nil
	}
	return fmt.Sprintf("%T %s", v, text), true
}

// below returns the schema below a step.
func (r Schema) below(step Step) Schema {
	if name, isName := step.(string); isName {
		return r.Child(name)
	}
	return r.Element()
}

// isAtomic reports whether a value of the type belongs to one writer as a whole. A list without a schema does.
func (r Schema) isAtomic(value any) bool {
	_, isList := value.([]any)
	return r.IsAtomicMap() || isList && !r.IsAssociative()
}

// Foreign returns the paths of what have contains and want does not, at and below a path of have.
//
// If the path leads into a part that want does not contain, Foreign returns one path. It ends at the innermost item of
// a list with keys, or of a set, in this part. If the path has no such item there, it ends at the part itself.
//
// If want contains the value at the path, Foreign returns the foreign fields below the path, but no fields in lists. If
// the value is a list, it returns the foreign items of the list.
func (r Schema) Foreign(want, have any, at []Step) [][]Step {
	ref, foreignFrom, innermost := r, -1, -1
	for i, step := range at {
		if foreignFrom < 0 {
			if ref.isAtomic(have) {
				return nil
			}
			if want = ref.counterpart(want, have, step); want == nil {
				foreignFrom = i
			}
		}
		if _, isItem := step.(int); isItem && foreignFrom >= 0 && ref.IsAssociative() {
			innermost = i
		}
		have = below(have, step)
		if have == nil && foreignFrom == i {
			return nil // the value is in neither tree
		}
		ref = ref.below(step)
	}
	if foreignFrom < 0 {
		return ref.foreignBelow(want, have, slices.Clip(at))
	}
	return [][]Step{at[:max(foreignFrom, innermost)+1]}
}

func (r Schema) foreignBelow(want, have any, at []Step) (found [][]Step) {
	if r.isAtomic(have) {
		return nil
	}
	switch have := have.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(have)) {
			w := r.counterpart(want, have, k)
			if w == nil {
				found = append(found, append(at, k))
			} else if _, isMap := have[k].(map[string]any); isMap {
				found = append(found, r.Child(k).foreignBelow(w, have[k], slices.Clip(append(at, k)))...)
			}
		}
	case []any:
		items, _ := want.([]any)
		find := r.finder(items)
		for i := range have {
			if find(have[i]) < 0 {
				found = append(found, append(at, i))
			}
		}
	}
	return found
}

// counterpart takes a step in have, and returns the value in want that corresponds to the value there, or nil. Items
// of a shared list correspond if they have the same keys, or the same value if the list is a set.
func (r Schema) counterpart(want, have any, step Step) any {
	if _, isItem := step.(int); !isItem {
		return below(want, step)
	}
	items, _ := want.([]any)
	live := below(have, step)
	if live == nil || !r.IsAssociative() {
		return nil
	}
	if at := r.finder(items)(live); at >= 0 {
		return items[at]
	}
	return nil
}

// FillEmpty puts the empty maps and lists of want in the place of nulls in have. A server-side apply leaves null where
// the last field of a struct is dropped, although the empty struct is sent.
func (r Schema) FillEmpty(want, have any) {
	switch have := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for k, v := range w {
			switch v := v.(type) {
			case map[string]any:
				if have[k] == nil {
					have[k] = map[string]any{}
				}
				r.Child(k).FillEmpty(v, have[k])
			case []any:
				if have[k] == nil {
					have[k] = []any{}
				}
				r.Child(k).FillEmpty(v, have[k])
			}
		}
	case []any:
		if !r.IsAssociative() {
			return
		}
		items, _ := want.([]any)
		find := r.finder(items)
		for i := range have {
			if w := find(have[i]); w >= 0 {
				r.Element().FillEmpty(items[w], have[i])
			}
		}
	}
}

// SameScalar compares texts and bools, numbers of any Go type by value, and quantities by their amount.
func SameScalar(a, b any, quantity bool) bool {
	switch a.(type) {
	case map[string]any, []any: // == would panic
		return false
	}
	if a == b {
		return true
	}
	if quantity {
		x, err := resource.ParseQuantity(ScalarText(a))
		y, otherErr := resource.ParseQuantity(ScalarText(b))
		return err == nil && otherErr == nil && x.Cmp(y) == 0
	}
	if !isNumber(a) || !isNumber(b) {
		return false
	}
	i, err := strconv.ParseInt(ScalarText(a), 10, 64)
	j, otherErr := strconv.ParseInt(ScalarText(b), 10, 64)
	if err == nil && otherErr == nil {
		return i == j
	}
	x, err := strconv.ParseFloat(ScalarText(a), 64)
	y, otherErr := strconv.ParseFloat(ScalarText(b), 64)
	return err == nil && otherErr == nil && x == y
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, int32, int64, uint64, float64, json.Number:
		return true
	}
	return false
}

// ScalarText returns a scalar of a tree as text, without quotes.
func ScalarText(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}
