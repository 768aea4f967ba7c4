package compare

import (
	"reflect"
	"slices"
	"strings"
)

// This file decides which fields of an object are sent and compared: all that a client may set and that has a value. Left out
// are the status, the metadata that the API server owns, and what encoding/json leaves out, such as nil and what is empty
// under omitempty. Lists and maps are compared by the API's schema; see schema.go.

// serverOwned are the fields of an object's metadata that a client does not send.
var serverOwned = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
	"generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// withoutServerOwned returns a copy of an object's comparer that neither sends nor compares what the API server owns.
func withoutServerOwned(root *structComparer) *structComparer {
	object := root.without("apiVersion", "kind", "status")
	for i, f := range object.fields {
		if metadata, ok := f.comparer.(*structComparer); ok && f.name == "metadata" {
			object.fields[i].comparer = metadata.without(serverOwned...)
		}
	}
	return object
}

// structFields returns the fields of a struct as encoding/json names them, with those of embedded structs.
func (c *compiler) structFields(t reflect.Type, ref typeRef, offset uintptr) []field {
	var own, embedded []field
	for f := range t.Fields() {
		name, options, more := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && !more:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, c.structFields(f.Type, ref, offset+f.Offset)...)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			typ, _ := ref.field(name)
			omitEmpty := omitsEmpty(options, f.Type.Kind())
			unset, inner := newProbe(f.Type, offset+f.Offset, omitEmpty), c.compile(f.Type, typ)
			own = append(own, field{
				name:      name,
				quoted:    string(appendString(nil, name)) + ":",
				offset:    offset + f.Offset,
				omitEmpty: omitEmpty,
				unset:     unset,
				decided:   unset.decides(f.Type, inner, omitEmpty),
				comparer:  inner,
			})
		}
	}
	// As in encoding/json, a field hides an embedded one of the same name.
	for _, e := range embedded {
		if !slices.ContainsFunc(own, func(f field) bool { return f.name == e.name }) {
			own = append(own, e)
		}
	}
	return own
}

// omitsEmpty reports whether the options of a JSON tag leave out an empty value. For lists and maps, omitzero leaves out
// only nil, which is left out in any case.
func omitsEmpty(options string, kind reflect.Kind) bool {
	list := strings.Split(options, ",")
	return slices.Contains(list, "omitempty") ||
		slices.Contains(list, "omitzero") && kind != reflect.Slice && kind != reflect.Map
}
