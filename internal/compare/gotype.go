package compare

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// goType says how the values of a Go type are written as JSON.
type goType struct {
	form   form
	fields []goField // the fields of a struct, sorted by name
}

type form int

const (
	byKind      form = iota // according to its reflect.Kind: string, number, struct, list, map, pointer
	quantity                // resource.Quantity
	intOrString             // intstr.IntOrString
	opaque                  // as the type's own marshaler or encoding/json writes it: times, raw JSON, floats, interfaces
)

type goField struct {
	name      string
	index     []int // the index of the field, through embedded structs
	typ       reflect.Type
	omitEmpty bool
}

var goTypes sync.Map // reflect.Type → *goType, which depends only on the type

func goTypeOf(t reflect.Type) *goType {
	if known, ok := goTypes.Load(t); ok {
		return known.(*goType)
	}
	g := &goType{form: formOf(t)}
	if t.Kind() == reflect.Struct && g.form == byKind {
		g.fields = fieldsOf(t, nil)
		slices.SortStableFunc(g.fields, func(a, b goField) int { return strings.Compare(a.name, b.name) })
	}
	known, _ := goTypes.LoadOrStore(t, g)
	return known.(*goType)
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

func formOf(t reflect.Type) form {
	switch t {
	case quantityType:
		return quantity
	case intOrStringType:
		return intOrString
	}
	marshals := marshalsItself(t)
	switch t.Kind() {
	case reflect.Pointer:
		return byKind
	case reflect.Bool, reflect.String, reflect.Slice,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if !marshals {
			return byKind
		}
	case reflect.Struct:
		if !marshals && unsupportedField(t) == "" {
			return byKind
		}
	case reflect.Map:
		if !marshals && t.Key().Kind() == reflect.String && !t.Key().Implements(textMarshaler) {
			return byKind
		}
	}
	return opaque
}

func marshalsItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(jsonMarshaler) || pointer.Implements(textMarshaler)
}

// isPlainStruct reports whether encoding/json writes a type as a struct, field by field. In such a struct, null only means that a field is
// unset. In other types, such as raw JSON and times, a null is a value of its own.
func isPlainStruct(t reflect.Type) bool { return t.Kind() == reflect.Struct && !marshalsItself(t) }

// fieldsOf returns the fields of a struct with the names that encoding/json gives them, including the fields of embedded structs.
func fieldsOf(t reflect.Type, at []int) []goField {
	var own, embedded []goField
	for f := range t.Fields() {
		name, options, more := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clip(at), f.Index...)
		switch {
		case name == "-" && !more:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, fieldsOf(f.Type, index)...)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			own = append(own, goField{name: name, index: index, typ: f.Type, omitEmpty: omitsEmpty(options, f.Type.Kind())})
		}
	}
	// As in encoding/json, a field hides the field of an embedded struct with the same name.
	for _, e := range embedded {
		if !slices.ContainsFunc(own, func(f goField) bool { return f.name == e.name }) {
			own = append(own, e)
		}
	}
	return own
}

// omitsEmpty reports whether the options of a JSON tag leave out an empty value. For lists and maps, omitzero leaves out only nil, which is
// left out in any case.
func omitsEmpty(options string, kind reflect.Kind) bool {
	list := strings.Split(options, ",")
	return slices.Contains(list, "omitempty") ||
		slices.Contains(list, "omitzero") && kind != reflect.Slice && kind != reflect.Map
}

// unsupportedField describes a field of the struct that encoding/json writes by a rule which this package does not implement, because no
// type of the API needs the rule. It returns "" if the struct has no such field.
func unsupportedField(t reflect.Type) string {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case slices.Contains(strings.Split(options, ","), "string"):
			return "field " + f.Name + " has the option string"
		case !f.Anonymous || name != "":
		case f.Type.Kind() == reflect.Pointer:
			return "field " + f.Name + " is an embedded pointer"
		case f.Type.Kind() == reflect.Struct:
			if why := unsupportedField(f.Type); why != "" {
				return why
			}
		}
	}
	return ""
}

// field returns the field of a struct with this name, or nil.
func (g *goType) field(name string) *goField {
	at, found := slices.BinarySearchFunc(g.fields, name, func(f goField, name string) int { return strings.Compare(f.name, name) })
	if !found {
		return nil
	}
	return &g.fields[at]
}

// of returns the value of the field in the struct v.
func (f *goField) of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

// isUnset reports whether a field with this value is left out of the JSON. omitEmpty is the option of the field's tag.
func isUnset(v reflect.Value, omitEmpty bool) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.IsNil() || omitEmpty && v.Len() == 0 && goTypeOf(v.Type()).form == byKind
	case reflect.Struct:
		if !omitEmpty {
			return false
		}
		switch goTypeOf(v.Type()).form {
		case byKind:
			return false
		case quantity:
			q, _ := reflect.TypeAssert[resource.Quantity](v)
			return q.IsZero()
		}
	}
	return omitEmpty && v.IsZero()
}
