package compare

import (
	"fmt"
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
)

// Schemas tells how server-side apply reads the lists and maps of a kind.
type Schemas struct {
	// server gives the API server's schemas of a group and version; nil to do without.
	server func(schema.GroupVersion) (managedfields.TypeConverter, error)
}

// BuiltIn knows the kinds that client-go knows. Parsing them takes some 0.1 s, once per
// process, on first use.
var BuiltIn Schemas

// FromServer knows also what an API server says of its custom resources. It asks once per
// group and version.
func FromServer(server openapi.Client) Schemas {
	root := openapi3.NewRoot(server)
	return Schemas{server: func(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
		spec, err := root.GVSpec(gv)
		if err != nil {
			return nil, fmt.Errorf("schemas of %s: %w", gv, err)
		}
		return managedfields.NewTypeConverter(spec.Components.Schemas, false)
	}}
}

// clientGoKinds are the kinds of client-go, and no other: programs add their own to client-go's
// global scheme, as kubebuilder's tests do.
var clientGoKinds = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(kinds); err != nil {
		panic(err) // they are all its own
	}
	return kinds
})

var builtIn = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientGoKinds())
})

// typeRef is a type in a schema; the zero value is a type without schema.
type typeRef struct {
	schema   *smdschema.Schema
	atom     smdschema.Atom
	quantity bool
}

// lookup finds a kind's type. A kind without schema still has the API's metadata.
func (s Schemas) lookup(kind schema.GroupVersionKind) (typeRef, error) {
	if clientGoKinds().Recognizes(kind) {
		return parse(builtIn(), kind)
	}
	if s.server != nil {
		converter, err := s.server(kind.GroupVersion())
		if err != nil {
			return typeRef{}, err
		}
		return parse(converter, kind)
	}
	known, err := parse(builtIn(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		return typeRef{}, err
	}
	metadata, _ := known.atom.FindField("metadata")
	return typeRef{schema: known.schema, atom: smdschema.Atom{Map: &smdschema.Map{
		Fields: []smdschema.StructField{metadata},
	}}}, nil
}

// BuiltInTypes converts objects of the kinds that client-go knows. Programs that also stand for an
// API server share it, since parsing takes 0.1 s.
func BuiltInTypes() managedfields.TypeConverter { return builtIn() }

func parse(converter managedfields.TypeConverter, kind schema.GroupVersionKind) (typeRef, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	typed, err := converter.ObjectToTyped(empty)
	if err != nil {
		return typeRef{}, fmt.Errorf("no schema for %s: %w", kind, err)
	}
	atom, ok := typed.Schema().Resolve(typed.TypeRef())
	if !ok {
		return typeRef{}, fmt.Errorf("no schema for %s: its type does not resolve", kind)
	}
	return typeRef{schema: typed.Schema(), atom: atom}, nil
}

func (r typeRef) resolve(to smdschema.TypeRef) typeRef {
	if r.schema == nil {
		return typeRef{}
	}
	atom, ok := r.schema.Resolve(to)
	if !ok {
		return typeRef{}
	}
	quantity := to.NamedType != nil && strings.Contains(*to.NamedType, "resource.Quantity")
	return typeRef{schema: r.schema, atom: atom, quantity: quantity}
}

// field gives the type and the default of a struct's field.
func (r typeRef) field(name string) (typeRef, any) {
	if r.atom.Map == nil {
		return typeRef{}, nil
	}
	f, ok := r.atom.FindField(name)
	if !ok {
		return typeRef{}, nil
	}
	return r.resolve(f.Type), f.Default
}

// element gives the type of a list's items or a map's values.
func (r typeRef) element() typeRef {
	switch {
	case r.atom.List != nil:
		return r.resolve(r.atom.List.ElementType)
	case r.atom.Map != nil:
		return r.resolve(r.atom.Map.ElementType)
	}
	return typeRef{}
}

func (r typeRef) atomicMap() bool {
	return r.atom.Map != nil && r.atom.Map.ElementRelationship == smdschema.Atomic
}

func (r typeRef) associative() bool {
	return r.atom.List != nil && r.atom.List.ElementRelationship == smdschema.Associative
}

// selector reports whether the type is a label selector. It is atomic, and unlike other atomic
// structs the API server sets no defaults in it: a field that we leave out must not be there.
func (r typeRef) selector() bool {
	if !r.atomicMap() || len(r.atom.Fields) != 2 {
		return false
	}
	_, labels := r.atom.FindField("matchLabels")
	_, expressions := r.atom.FindField("matchExpressions")
	return labels && expressions
}
