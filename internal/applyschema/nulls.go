package applyschema

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fields says which fields of a kind can be null, which the schema of structured-merge-diff does not say.
type fields struct {
	nullable bool
	byName   map[string]*fields // by name: the fields of a struct
	values   *fields            // the values of a map; nil if they have no schema
	items    *fields            // the items of a list; nil if they have no schema
}

func (f *fields) child(name string) *fields {
	if f == nil {
		return nil
	}
	if child, found := f.byName[name]; found {
		return child
	}
	return f.values
}

func (f *fields) element() *fields {
	if f == nil {
		return nil
	}
	return f.items
}

// openAPI reads the fields of types from OpenAPI schemas. It reads the fields of each named type only once, because types may contain
// themselves.
type openAPI struct {
	types map[string]*spec.Schema
	known map[string]*fields
}

// ofKind returns the fields of the objects of a kind, or nil if the kind has no schema.
func (o *openAPI) ofKind(kind schema.GroupVersionKind) *fields {
	for name, s := range o.types {
		kinds, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			k, _ := k.(map[string]any)
			if k["group"] == kind.Group && k["version"] == kind.Version && k["kind"] == kind.Kind {
				return o.named(name)
			}
		}
	}
	return nil
}

func (o *openAPI) named(name string) *fields {
	f, found := o.known[name]
	if !found {
		f = &fields{}
		o.known[name] = f
		if s := o.types[name]; s != nil {
			o.read(f, s)
		}
	}
	return f
}

func (o *openAPI) of(s *spec.Schema) *fields {
	ref := s.Ref.String()
	if ref == "" && len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref.String()
	}
	if ref != "" {
		return o.named(ref[strings.LastIndex(ref, "/")+1:])
	}
	f := &fields{}
	o.read(f, s)
	return f
}

func (o *openAPI) read(f *fields, s *spec.Schema) {
	f.nullable = s.Nullable
	if len(s.Properties) > 0 {
		f.byName = make(map[string]*fields, len(s.Properties))
	}
	for name := range s.Properties {
		property := s.Properties[name]
		f.byName[name] = o.of(&property)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		f.values = o.of(s.AdditionalProperties.Schema)
	}
	if s.Items != nil && s.Items.Schema != nil {
		f.items = o.of(s.Items.Schema)
	}
}
