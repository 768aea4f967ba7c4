package compare

import "reflect"

// AppendValue appends any value to b as deterministic JSON: fields and keys are sorted, and quantities are in canonical form. It leaves out
// what a [Comparer] leaves out, but keeps the fields that the API server sets. If v has no JSON form, the error is an [*EncodeError].
func AppendValue(b []byte, v any) ([]byte, error) {
	if v == nil {
		return append(b, "null"...), nil
	}
	var build treeBuilder
	tree := build.tree(reflect.ValueOf(v))
	if build.err != nil {
		return nil, build.err
	}
	return appendJSON(b, tree)
}

// Equal reports whether two values would be sent alike: each covers the other. a and b are pointers to values of one Go type that is not an
// object, such as a status. Equal does not change them.
func Equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || covers(a, b) && covers(b, a)
}

func covers(want, have any) bool {
	var walk comparison
	walk.compare(place{}, reflect.ValueOf(want), reflect.ValueOf(have))
	return !walk.different && walk.build.err == nil
}
