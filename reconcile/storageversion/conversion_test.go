package storageversion

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// converter stands for a converter that builder.WithConverter registers.
type converter struct{}

func (converter) ConvertObject(context.Context, runtime.Object, runtime.Object) error { return nil }

// TestConversionsOf proves that a converter is found although it is registered later: in main, the webhook may be set up after
// Migrate.
func TestConversionsOf(t *testing.T) {
	scheme, kind := runtime.NewScheme(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://localhost:1"}, ctrl.Options{Scheme: scheme})
	require.NoError(t, err)
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(kind)
	c, err := conversionsOf(mgr, widget, kind.GroupKind())
	require.NoError(t, err)
	assert.False(t, c.several)
	assert.False(t, c.converts())
	require.NoError(t, mgr.GetConverterRegistry().RegisterConverter(kind.GroupKind(), converter{}))
	assert.True(t, c.converts())

	older := kind
	older.Version = "v1alpha1"
	scheme.AddKnownTypeWithName(older, &unstructured.Unstructured{})
	require.NoError(t, scheme.SetVersionPriority(kind.GroupVersion(), older.GroupVersion()))
	c, err = conversionsOf(mgr, widget, kind.GroupKind())
	require.NoError(t, err)
	assert.True(t, c.several)
}

func TestConversionsCheck(t *testing.T) {
	type schemas = apiextensionsv1.JSONSchemaProps
	object := func(properties map[string]schemas) schemas { return schemas{Type: "object", Properties: properties} }
	spec := func(properties map[string]schemas) schemas {
		return object(map[string]schemas{"metadata": {Type: "object"}, "spec": object(properties)})
	}
	integer, text := schemas{Type: "integer"}, schemas{Type: "string"}
	list := func(item schemas) schemas {
		return schemas{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	}
	values := func(value schemas) schemas {
		return schemas{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}}
	}
	former := spec(map[string]schemas{"memoryMB": integer, "size": integer})
	free := schemas{Type: "object", XPreserveUnknownFields: new(true)}
	one := object(map[string]schemas{"a": text, "b": text})
	for name, tc := range map[string]struct {
		reason            string
		old, storage      schemas
		converts, several bool
		webhook, alone    bool
		is                error
		says              string
	}{
		"Converts":         {reason: "the types have a conversion", old: former, storage: former, converts: true, is: errNoConversion},
		"Webhook":          {reason: "it converts", old: former, storage: spec(nil), converts: true, several: true, webhook: true},
		"OneVersion":       {reason: "nothing can be converted", old: former, storage: former, converts: true, alone: true},
		"OneType":          {reason: "the operator knows one version only", old: former, storage: spec(nil)},
		"Same":             {reason: "versions with the same fields need no webhook", old: former, storage: former, several: true},
		"More":             {reason: "a new field drops nothing", old: spec(nil), storage: former, several: true},
		"Dropped":          {reason: "the conversion was forgotten", old: former, storage: spec(map[string]schemas{"memory": text, "size": integer}), several: true, is: errDropsField, says: ": .spec.memoryMB of version v1alpha1"},
		"DroppedInList":    {reason: "items are pruned", old: spec(map[string]schemas{"l": list(one)}), storage: spec(map[string]schemas{"l": list(object(map[string]schemas{"a": text}))}), several: true, is: errDropsField, says: ": .spec.l[].b of"},
		"DroppedInMap":     {reason: "values are pruned", old: spec(map[string]schemas{"m": values(one)}), storage: spec(map[string]schemas{"m": values(object(nil))}), several: true, is: errDropsField, says: ": .spec.m.*.a of"},
		"FieldBecomesMap":  {reason: "a map has any key", old: spec(map[string]schemas{"m": object(map[string]schemas{"a": text})}), storage: spec(map[string]schemas{"m": values(text)}), several: true},
		"PreservesUnknown": {reason: "nothing is pruned", old: former, storage: object(map[string]schemas{"spec": free}), several: true},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			add := func(name string, storage bool, s schemas) {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
					Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &s},
				})
			}
			if !tc.alone {
				add("v1alpha1", false, tc.old)
			}
			add("v1", true, tc.storage)
			if tc.webhook {
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			}
			err := conversions{func() bool { return tc.converts }, tc.several}.check(crd)
			require.ErrorIs(t, err, tc.is, tc.reason)
			if tc.says != "" {
				assert.ErrorContains(t, err, tc.says)
			}
		})
	}
}
