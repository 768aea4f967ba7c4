package plan

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Schemas tells how server-side apply reads the lists and maps of a kind.
type Schemas struct {
	converter func() managedfields.TypeConverter
}

// BuiltIn knows the kinds that client-go knows. Parsing them takes some 0.1 s,
// once per process, on first use.
var BuiltIn = Schemas{converter: sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
})}

// typeRef is a type in a schema; the zero value is a type without schema.
type typeRef struct {
	schema *smdschema.Schema
	atom   smdschema.Atom
}

// lookup finds a kind's type. A kind without schema still has the API's metadata.
func (s Schemas) lookup(kind schema.GroupVersionKind) (typeRef, error) {
	if clientgoscheme.Scheme.Recognizes(kind) {
		return s.parse(kind)
	}
	known, err := s.parse(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		return typeRef{}, err
	}
	metadata, _ := known.atom.Map.FindField("metadata")
	return typeRef{schema: known.schema, atom: smdschema.Atom{Map: &smdschema.Map{
		Fields: []smdschema.StructField{metadata},
	}}}, nil
}

func (s Schemas) parse(kind schema.GroupVersionKind) (typeRef, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	typed, err := s.converter().ObjectToTyped(empty)
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
	return typeRef{schema: r.schema, atom: atom}
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
