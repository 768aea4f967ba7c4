package crd

import (
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

const components = "#/components/schemas/"

// OpenAPI returns the OpenAPI document of custom kinds of one group and version. The document has their schemas and no paths.
func OpenAPI(kinds []*kind.Kind) *spec3.OpenAPI {
	schemas := map[string]*spec.Schema{}
	for _, k := range kinds {
		custom, ok := k.Strategy.(*strategy)
		if !ok {
			continue
		}
		root := custom.schema.ToKubeOpenAPI()
		describe(root, components)
		root.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": k.GVK.Group, "version": k.GVK.Version, "kind": k.GVK.Kind}})
		schemas[nameOf(k.GVK)] = root
	}
	addDefinition(schemas, metav1.ObjectMeta{}.OpenAPIModelName())
	return &spec3.OpenAPI{Version: "3.0.0", Info: &spec.Info{}, Components: &spec3.Components{Schemas: schemas}}
}

// nameOf returns the name of a kind's schema, such as com.example.v1.Shop.
func nameOf(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// addDefinition adds the schema of a Kubernetes type, and the schemas of the types that its fields use.
func addDefinition(to map[string]*spec.Schema, name string) {
	definition, found := definitions()[name]
	if _, has := to[name]; has || !found {
		return
	}
	to[name] = &definition.Schema
	for _, used := range definition.Dependencies {
		addDefinition(to, used)
	}
}

func definitions() map[string]common.OpenAPIDefinition {
	return openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(components + name) })
}
