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

// Schemas looks up how server-side apply merges the lists and maps of a kind. The zero value is [BuiltIn].
type Schemas struct {
	// server returns the API server's schemas of a group and version. It is nil for BuiltIn.
	server func(schema.GroupVersion) (managedfields.TypeConverter, error)
}

// BuiltIn has the schemas of the kinds in client-go. Parsing them takes about 0.1 s, once per process, on first use. It
// has no schemas of custom resources except that of their metadata.
var BuiltIn Schemas

// FromServer returns schemas like BuiltIn, and gets those of custom resources from an API server. It sends its requests
// when a kind is compiled. A kind that the API server does not serve is then an error.
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

// clientGoKinds returns a scheme with the kinds of client-go and no others. The global scheme of client-go may have
// more: programs add their own kinds to it, as kubebuilder's tests do.
var clientGoKinds = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(kinds); err != nil {
		panic(err) // it cannot fail for kinds of its own
	}
	return kinds
})

var builtIn = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientGoKinds())
})

// typeRef is a type in a schema. The zero value is a type without a schema.
type typeRef struct {
	schema   *smdschema.Schema
	atom     smdschema.Atom
	quantity bool
}

// lookup returns the type of a kind. For a kind without a schema, the type has the metadata of all objects.
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
	deduced := deducedType
	return typeRef{schema: known.schema, atom: smdschema.Atom{Map: &smdschema.Map{
		Fields: []smdschema.StructField{metadata}, ElementType: smdschema.TypeRef{NamedType: &deduced},
	}}}, nil
}

// deducedType is the name of the type of values without a schema: maps are merged, and lists are atomic.
const deducedType = "__untyped_deduced_"

// BuiltInTypes returns a converter for objects of the kinds in client-go. An API server in memory shares it with
// BuiltIn, since parsing takes 0.1 s.
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

// field returns the type and the default of a field.
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

// element returns the type of the items of a list or of the values of a map.
func (r typeRef) element() typeRef {
	switch {
	case r.atom.List != nil:
		return r.resolve(r.atom.List.ElementType)
	case r.atom.Map != nil:
		return r.resolve(r.atom.Map.ElementType)
	}
	return typeRef{}
}

func (r typeRef) isAtomicMap() bool {
	return r.atom.Map != nil && r.atom.Map.ElementRelationship == smdschema.Atomic
}

func (r typeRef) isAssociative() bool {
	return r.atom.List != nil && r.atom.List.ElementRelationship == smdschema.Associative
}

// hasFields reports whether the type is a struct.
func (r typeRef) hasFields() bool { return r.atom.Map != nil && len(r.atom.Fields) > 0 }

// isSelector reports whether the type is a label selector. It is atomic. Unlike in other atomic structs, the API server
// sets no defaults in it, so a field that is left out must be absent in the live object.
func (r typeRef) isSelector() bool {
	if !r.isAtomicMap() || len(r.atom.Fields) != 2 {
		return false
	}
	_, labels := r.atom.FindField("matchLabels")
	_, expressions := r.atom.FindField("matchExpressions")
	return labels && expressions
}
