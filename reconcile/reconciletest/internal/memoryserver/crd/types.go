package crd

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/applyschema"
)

const (
	metaTypes      = "io.k8s.apimachinery.pkg.apis.meta.v1."
	customTypeName = "custom"
)

// versionedTypes converts objects of a custom kind with several versions for server-side apply. It has one converter for each version.
type versionedTypes map[schema.GroupVersion]objectTypes

var _ managedfields.TypeConverter = versionedTypes{}

func (v versionedTypes) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	types, known := v[object.GetObjectKind().GroupVersionKind().GroupVersion()]
	if !known {
		return nil, runtime.NewNotRegisteredErrForKind("custom", object.GetObjectKind().GroupVersionKind())
	}
	return types.ObjectToTyped(object, options...)
}

func (v versionedTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return objectTypes{}.TypedToObject(value) // the result does not depend on the version
}

// objectTypes converts the objects of one version of a custom kind for server-side apply.
type objectTypes struct {
	gvk  schema.GroupVersionKind
	root typed.ParseableType
}

var _ managedfields.TypeConverter = objectTypes{}

// typeConverter returns the types with which server-side apply merges the lists and maps of a custom kind. The metadata has the same schema
// as in built-in kinds.
func typeConverter(gvk schema.GroupVersionKind, structural *structuralschema.Structural) (objectTypes, error) {
	root := structural.ToKubeOpenAPI()
	describe(root, "#/definitions/")
	types, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{customTypeName: root}, false)
	if err != nil {
		return objectTypes{}, fmt.Errorf("schema for server-side apply: %w", err)
	}
	have := map[string]bool{}
	for _, t := range types.Types {
		have[t.Name] = true
	}
	known, err := builtInSchema()
	if err != nil {
		return objectTypes{}, err
	}
	for _, t := range known.Types {
		if strings.HasPrefix(t.Name, metaTypes) && !have[t.Name] {
			types.Types = append(types.Types, t)
		}
	}
	parser := typed.Parser{Schema: smdschema.Schema{Types: types.Types}}
	return objectTypes{gvk: gvk, root: parser.Type(customTypeName)}, nil
}

// describe adds the fields that all objects have to the schema of a kind. definitions is the path of the definition with the schema of
// their metadata.
func describe(root *spec.Schema, definitions string) {
	describeObject(root, definitions)
	describeEmbedded(root, definitions)
}

func describeObject(s *spec.Schema, definitions string) {
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	s.SetProperty("apiVersion", text)
	s.SetProperty("kind", text)
	s.SetProperty("metadata", *spec.RefSchema(definitions + metaTypes + "ObjectMeta"))
}

// describeEmbedded adds the fields that all objects have to the schemas of embedded objects, such as a whole pod template.
func describeEmbedded(s *spec.Schema, definitions string) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		describeEmbedded(&property, definitions)
		s.Properties[name] = property
	}
	if s.Items != nil {
		describeEmbedded(s.Items.Schema, definitions)
	}
	if s.AdditionalProperties != nil {
		describeEmbedded(s.AdditionalProperties.Schema, definitions)
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		describeObject(s, definitions)
	}
}

func builtInSchema() (*smdschema.Schema, error) {
	empty := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	object, err := applyschema.BuiltInTypes().ObjectToTyped(empty)
	if err != nil {
		return nil, err
	}
	return object.Schema(), nil
}

func (t objectTypes) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	untyped, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s is held untyped, got a %T", t.gvk, object)
	}
	return t.root.FromUnstructured(untyped.Object, options...)
}

func (t objectTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object after merging", t.gvk)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
