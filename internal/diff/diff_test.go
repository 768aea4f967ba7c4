package diff

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValues(t *testing.T) {
	type object = map[string]any
	byName := func(_ int, item any) string { return item.(object)["name"].(string) }
	quoted := func(key string) string { return `"` + key + `"` }
	key := func(item any) (string, bool) {
		fields, _ := item.(object)
		name, found := fields["name"].(string)
		return name, found
	}
	tests := map[string]struct {
		reason        string
		before, after any
		options       Options
		want          []Difference
	}{
		"Equal": {
			reason: "equal values have no differences",
			before: object{"a": []any{object{"b": 1}}}, after: object{"a": []any{object{"b": 1}}},
		},
		"NilAndEmpty": {
			reason: "a nil map or list of Go is an empty one, as in JSON",
			before: object{"a": object(nil), "b": []any(nil)}, after: object{"a": object{}, "b": []any{}},
		},
		"Scalars": {
			reason: "the path of the values themselves is empty",
			before: 1, after: "1",
			want: []Difference{{Before: 1, After: "1"}},
		},
		"Types": {
			reason: "values of different types are different",
			before: object{"a": object{"b": 1}}, after: object{"a": []any{1}},
			want: []Difference{{Path: Path{"a"}, Before: object{"b": 1}, After: []any{1}}},
		},
		"Sorted": {
			reason: "differences come in the order of their paths",
			before: object{"b": 1, "a": object{"c": 1, "d": 1}}, after: object{"b": 2, "a": object{"c": 1, "d": 2}},
			want: []Difference{{Path: Path{"a", "d"}, Before: 1, After: 2}, {Path: Path{"b"}, Before: 1, After: 2}},
		},
		"AbsentIsNotNull": {
			reason: "a null may mean something",
			before: object{"a": nil, "b": 1}, after: object{"c": nil},
			want: []Difference{
				{Path: Path{"a"}, Before: nil, After: Absent{}},
				{Path: Path{"b"}, Before: 1, After: Absent{}},
				{Path: Path{"c"}, Before: Absent{}, After: nil},
			},
		},
		"OneSideOnly": {
			reason: "without ExpandMaps a map that only one side has is one value",
			before: object{"a": object{"b": object{"c": 1}}}, after: object{},
			want: []Difference{{Path: Path{"a"}, Before: object{"b": object{"c": 1}}, After: Absent{}}},
		},
		"OneSideOnlyExpanded": {
			reason: "with ExpandMaps each of its values is listed, and an empty map is a value",
			before: object{"a": object{"b": object{"c": 1}, "d": object{}}}, after: object{"e": object{"f": 1}},
			options: Options{ExpandMaps: true},
			want: []Difference{
				{Path: Path{"a", "b", "c"}, Before: 1, After: Absent{}},
				{Path: Path{"a", "d"}, Before: object{}, After: Absent{}},
				{Path: Path{"e", "f"}, Before: Absent{}, After: 1},
			},
		},
		"Items": {
			reason: "lists of the same length are compared item by item",
			before: []any{object{"name": "x", "v": 1}, object{"name": "y", "v": 1}},
			after:  []any{object{"name": "x", "v": 1}, object{"name": "y", "v": 2}},
			want:   []Difference{{Path: Path{"[1]", "v"}, Before: 1, After: 2}},
		},
		"NamedItems": {
			reason: "the caller says what an item is called",
			before: []any{object{"name": "x", "v": 1}}, after: []any{object{"name": "x", "v": 2}},
			options: Options{Item: byName},
			want:    []Difference{{Path: Path{"[x]", "v"}, Before: 1, After: 2}},
		},
		"KeyedItems": {
			reason:  "an item that only one list has is one difference, and the others are compared by their keys",
			before:  []any{object{"name": "x", "v": 1}, object{"name": "y", "v": 1}},
			after:   []any{object{"name": "y", "v": 2}, object{"name": "z", "v": 1}},
			options: Options{Key: key},
			want: []Difference{
				{Path: Path{"[x]"}, Before: object{"name": "x", "v": 1}, After: Absent{}},
				{Path: Path{"[y]", "v"}, Before: 1, After: 2},
				{Path: Path{"[z]"}, Before: Absent{}, After: object{"name": "z", "v": 1}},
			},
		},
		"KeyedItemsInAnotherOrder": {
			reason: "the order of a list may mean something",
			before: object{"a": []any{object{"name": "x"}, object{"name": "y"}}}, after: object{"a": []any{object{"name": "y"}, object{"name": "x"}}},
			options: Options{Key: key},
			want: []Difference{{
				Path: Path{"a"}, Before: []any{object{"name": "x"}, object{"name": "y"}}, After: []any{object{"name": "y"}, object{"name": "x"}},
			}},
		},
		"KeyTwice": {
			reason: "a key that occurs twice names no item",
			before: []any{object{"name": "x"}}, after: []any{object{"name": "x"}, object{"name": "x"}},
			options: Options{Key: key},
			want:    []Difference{{Before: []any{object{"name": "x"}}, After: []any{object{"name": "x"}, object{"name": "x"}}}},
		},
		"ItemsWithoutKey": {
			reason: "items of lists of the same length are matched by index if one of them has no key",
			before: []any{object{"name": "x"}, 1}, after: []any{object{"name": "x"}, 2},
			options: Options{Key: key},
			want:    []Difference{{Path: Path{"[1]"}, Before: 1, After: 2}},
		},
		"Lengths": {
			reason: "lists of different lengths are one difference",
			before: object{"a": []any{1}}, after: object{"a": []any{1, 2}},
			want: []Difference{{Path: Path{"a"}, Before: []any{1}, After: []any{1, 2}}},
		},
		"NamedFields": {
			reason: "the caller says how a key is written",
			before: object{"a": 1}, after: object{"a": 2},
			options: Options{Field: quoted},
			want:    []Difference{{Path: Path{`"a"`}, Before: 1, After: 2}},
		},
		"Numbers": {
			reason: "numbers are compared with their types, as reflect.DeepEqual does",
			before: object{"a": int64(1), "b": math.Inf(1)}, after: object{"a": 1.0, "b": math.Inf(1)},
			want: []Difference{{Path: Path{"a"}, Before: int64(1), After: 1.0}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Values(tc.before, tc.after, tc.options)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
