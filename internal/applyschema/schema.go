// Package applyschema looks up how server-side apply merges the objects of a kind, and answers questions about objects with that knowledge.
// The rules come from the API's own schema (https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy). Struct
// tags of Go types differ from it.
//
// The objects are trees: decoded JSON of maps, lists and scalars.
package applyschema

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Schemas looks up how server-side apply merges the lists and maps of a kind. The zero value is [BuiltIn].
type Schemas struct {
	// server returns the API server's schema of a kind. It is nil for BuiltIn.
	server func(schema.GroupVersionKind) (Schema, error)
}

// BuiltIn has the schemas of the kinds in client-go. They are parsed at the first use, which takes about 0.1 s, once in a process. For
// custom resources, BuiltIn has only the schema of their metadata.
var BuiltIn Schemas

// FromServer returns schemas that also cover custom resources. For the kinds in client-go it uses the schemas of [BuiltIn]. For any other
// kind it asks an API server, and each lookup sends requests. If the API server does not serve the kind, the lookup returns an error.
func FromServer(server openapi.Client) Schemas {
	root := openapi3.NewRoot(server)
	return Schemas{server: func(kind schema.GroupVersionKind) (Schema, error) {
		spec, err := root.GVSpec(kind.GroupVersion())
		if err != nil {
			return Schema{}, fmt.Errorf("schemas of %s: %w", kind.GroupVersion(), err)
		}
		converter, err := managedfields.NewTypeConverter(spec.Components.Schemas, false)
		if err != nil {
			return Schema{}, err
		}
		parsed, err := parse(converter, kind)
		types := &openAPI{types: spec.Components.Schemas, known: map[string]*fields{}}
		parsed.knowsNulls, parsed.fields = true, types.ofKind(kind)
		return parsed, err
	}}
}

// clientGoKinds returns a scheme with only the kinds of client-go. The global scheme of client-go may have more: programs add their own
// kinds to it, as kubebuilder's tests do.
var clientGoKinds = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(kinds); err != nil {
		panic(err) // it cannot fail, because the scheme is new and has only these kinds
	}
	return kinds
})

var builtIn = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientGoKinds())
})

// GoType returns the Go type of a kind in client-go, or nil for other kinds.
func GoType(kind schema.GroupVersionKind) reflect.Type {
	obj, err := clientGoKinds().New(kind)
	if err != nil {
		return nil
	}
	return reflect.TypeOf(obj).Elem()
}

// Schema says how server-side apply merges the values of one type: the objects of a kind, or a part of them. The zero value stands for a
// type without a schema.
type Schema struct {
	schema *smdschema.Schema
	atom   smdschema.Atom
	name   *string // the name of the type; nil if it has none
	// fields is nil inside of a type without a schema. knowsNulls is false if the API server's schema is not known.
	fields     *fields
	knowsNulls bool
}

// Of returns the schema of a kind. If the kind has no schema, the result covers only the metadata that all objects have.
func (s Schemas) Of(kind schema.GroupVersionKind) (Schema, error) {
	if clientGoKinds().Recognizes(kind) {
		return parse(builtIn(), kind)
	}
	if s.server != nil {
		return s.server(kind)
	}
	known, err := parse(builtIn(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		return Schema{}, err
	}
	metadata, _ := known.atom.FindField("metadata")
	deduced := deducedType
	return Schema{schema: known.schema, atom: smdschema.Atom{Map: &smdschema.Map{
		Fields: []smdschema.StructField{metadata}, ElementType: smdschema.TypeRef{NamedType: &deduced},
	}}}, nil
}

// deducedType is the name of the type for values without a schema: server-side apply merges maps, and replaces lists as a whole.
const deducedType = "__untyped_deduced_"

// BuiltInTypes returns a converter for objects of the kinds in client-go. The API server in memory uses it too, so that the schemas are
// parsed only once.
func BuiltInTypes() managedfields.TypeConverter { return builtIn() }

func parse(converter managedfields.TypeConverter, kind schema.GroupVersionKind) (Schema, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	value, err := converter.ObjectToTyped(empty)
	if err != nil {
		return Schema{}, fmt.Errorf("no schema for %s: %w", kind, err)
	}
	atom, ok := value.Schema().Resolve(value.TypeRef())
	if !ok {
		return Schema{}, fmt.Errorf("no schema for %s: its type does not resolve", kind)
	}
	return Schema{schema: value.Schema(), atom: atom}, nil
}

func (r Schema) resolve(to smdschema.TypeRef) Schema {
	if r.schema == nil || to.NamedType != nil && *to.NamedType == deducedType {
		return Schema{}
	}
	atom, ok := r.schema.Resolve(to)
	if !ok {
		return Schema{}
	}
	return Schema{schema: r.schema, atom: atom, name: to.NamedType}
}

// Type returns the type that package typed of structured-merge-diff uses for parsing and merging.
func (r Schema) Type() typed.ParseableType {
	return typed.ParseableType{Schema: r.schema, TypeRef: smdschema.TypeRef{Inlined: r.atom}}
}

// Child returns the schema of a struct's field, or of a map's values. If a struct preserves unknown fields, Child also returns a schema for
// these.
func (r Schema) Child(name string) Schema {
	child := Schema{}
	if r.atom.Map != nil {
		to := r.atom.Map.ElementType
		if f, known := r.atom.FindField(name); known {
			to = f.Type
		}
		child = r.resolve(to)
	}
	child.fields, child.knowsNulls = r.fields.child(name), r.knowsNulls
	return child
}

// DeclaresNumber reports whether the schema has a field of this name whose values can only be numbers.
func DeclaresNumber(r Schema, name string) bool {
	if r.atom.Map == nil {
		return false
	}
	_, declared := r.atom.FindField(name)
	scalar := r.Child(name).atom.Scalar
	return declared && scalar != nil && *scalar == smdschema.Numeric
}

// Element returns the schema of a list's items.
func (r Schema) Element() Schema {
	item := Schema{}
	if r.atom.List != nil {
		item = r.resolve(r.atom.List.ElementType)
	}
	item.fields, item.knowsNulls = r.fields.element(), r.knowsNulls
	return item
}

// KnowsNulls reports whether it is known which fields can be null. That is so if the schema comes from the API server, and the kind is not
// in client-go.
func (r Schema) KnowsNulls() bool { return r.knowsNulls }

// TakesNull reports whether the API server stores a null in a field of this type: the field is nullable, or has no schema. In any other
// field of a custom resource, the API server drops a null from a POST, and refuses it in an apply. If it is not known which fields are
// nullable, TakesNull returns false.
func (r Schema) TakesNull() bool { return r.knowsNulls && (r.fields == nil || r.fields.nullable) }

// IsMap reports whether the type is a struct or a map.
func (r Schema) IsMap() bool { return r.atom.Map != nil }

// HasFields reports whether the type is a struct.
func (r Schema) HasFields() bool { return r.atom.Map != nil && len(r.atom.Fields) > 0 }

// IsAtomicMap reports whether the type is a struct or a map that server-side apply replaces as a whole.
func (r Schema) IsAtomicMap() bool {
	return r.atom.Map != nil && r.atom.Map.ElementRelationship == smdschema.Atomic
}

// IsAssociative reports whether the type is a list whose items server-side apply merges: a list with keys, or a set.
func (r Schema) IsAssociative() bool {
	return r.atom.List != nil && r.atom.List.ElementRelationship == smdschema.Associative
}

// IsQuantity reports whether the type is a quantity.
func (r Schema) IsQuantity() bool {
	return r.name != nil && strings.Contains(*r.name, "resource.Quantity")
}

// Keys returns the names of the fields that identify an item of a list. For a set it returns none.
func (r Schema) Keys() []string {
	if r.atom.List == nil {
		return nil
	}
	return r.atom.List.Keys
}

// KeyOr returns value, the value of the key with this name in an item of this type. If value is nil, KeyOr returns the API server's default
// for the key, such as "TCP" for the protocol of a port.
func (r Schema) KeyOr(value any, name string) any {
	if value != nil || r.atom.Map == nil {
		return value
	}
	f, _ := r.atom.FindField(name)
	return f.Default
}

// IsSelector reports whether the type is a label selector. A label selector is an atomic struct, but unlike in other atomic structs, the
// API server sets no defaults in it. So a field that is left out must be absent in the live object.
func (r Schema) IsSelector() bool {
	if !r.IsAtomicMap() || len(r.atom.Fields) != 2 {
		return false
	}
	_, labels := r.atom.FindField("matchLabels")
	_, expressions := r.atom.FindField("matchExpressions")
	return labels && expressions
}
