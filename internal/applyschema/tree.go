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

// ItemName returns the keys of a list item and their values, as in paths: containerPort=80,protocol=TCP. If defaults is true, a key that is
// not set has the API server's default.
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

// finder returns a function that looks for an item in a list. The function returns the index of the first item with the same keys, or with
// the same value if the list is a set. If there is none, it returns -1.
func (r Schema) finder(in []any) func(item any) int {
	if len(r.Keys()) == 0 && r.Element().IsQuantity() {
		return func(item any) int {
			return slices.IndexFunc(in, func(other any) bool { return SameScalar(item, other, true) })
		}
	}
	first := make(map[string]int, len(in)) // the items are in a map, because a custom resource may have very long lists
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

// identity returns a string for an item of the list. Two items have the same string if and only if they have the same keys, or the same
// value if the list is a set. If an item cannot be equal to any other, ok is false.
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

// scalarIdentity returns a string for a scalar. Two scalars have the same string if and only if [SameScalar] reports that they are equal.
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

// below returns the schema of the value to which a step leads.
func (r Schema) below(step Step) Schema {
	if name, isName := step.(string); isName {
		return r.Child(name)
	}
	return r.Element()
}

// isAtomic reports whether server-side apply replaces a value of the type as a whole. It does so with a list without a schema, too.
func (r Schema) isAtomic(value any) bool {
	_, isList := value.([]any)
	return r.IsAtomicMap() || isList && !r.IsAssociative()
}

// Foreign returns the paths of values in have that want does not contain, at and below the path at.
//
// If at leads into a part of have that want does not contain, Foreign returns one path: the path of the innermost item, in this part, of a
// list with keys or of a set. If at does not lead through such an item there, it is the path of the part.
//
// If want contains the value at the path, Foreign returns the paths of the fields below that only have contains. It does not look for
// fields in lists. If the value is a list, Foreign returns the paths of the items that only have contains.
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
			return nil // neither have nor want has a value there
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

// counterpart takes a step from have, and returns the value in want that corresponds to the value to which the step leads, or nil. The
// items of two lists correspond if they have the same keys, or the same value if the list is a set.
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

// FillEmpty replaces nulls in have by the empty maps and lists that want has in the same places. If the last field of a struct is dropped,
// a server-side apply leaves null there, even if the apply sends the empty struct.
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

// SameScalar reports whether two scalars are equal. It compares numbers of different Go types by value, and quantities by amount.
func SameScalar(a, b any, quantity bool) bool {
	switch a.(type) {
	case map[string]any, []any: // comparing maps or lists by == would panic
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

// ScalarText returns a scalar as a string without quotes.
func ScalarText(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}
