package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// NewFieldManagers returns the field managers of a kind, by subresource. statusResets are the paths that a write of
// the status subresource resets. A request never owns what its subresource resets.
func NewFieldManagers(k *Kind, types managedfields.TypeConverter, statusResets ...fieldpath.Path) map[string]*managedfields.FieldManager {
	if !k.HasStatus {
		return map[string]*managedfields.FieldManager{"": NewFieldManager(k, types, "", nil)}
	}
	return map[string]*managedfields.FieldManager{
		"":                NewFieldManager(k, types, "", fieldpath.NewSet(fieldpath.MakePathOrDie("status"))),
		StatusSubresource: NewFieldManager(k, types, StatusSubresource, fieldpath.NewSet(statusResets...)),
	}
}

// NewFieldManager returns the field manager of one subresource, which resets the given fields.
func NewFieldManager(k *Kind, types managedfields.TypeConverter, subresource string, reset *fieldpath.Set) *managedfields.FieldManager {
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	if reset != nil {
		filters = fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
			fieldpath.APIVersion(k.GVK.GroupVersion().String()): reset,
		})
	}
	c := converter{k}
	m, err := managedfields.NewDefaultCRDFieldManager(withoutManagers{types}, c, c, c, k.GVK, k.GVK.GroupVersion(), subresource, filters)
	if err != nil {
		panic(err) // its only error is a missing type converter
	}
	return m
}

// converter converts, defaults and makes objects for a field manager. There is only one version of a kind, so
// converting is at most decoding the unstructured object in which fields were merged.
type converter struct{ kind *Kind }

var (
	_ runtime.ObjectConvertor = converter{}
	_ runtime.ObjectDefaulter = converter{}
	_ runtime.ObjectCreater   = converter{}
)

func (c converter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	merged, untyped := in.(*unstructured.Unstructured)
	if c.kind.Custom || !untyped {
		return in, nil
	}
	return c.kind.Strategy.FromMap(merged.Object, false)
}

func (c converter) Convert(_, _, _ any) error {
	return fmt.Errorf("%s is converted by version only", c.kind.GVK)
}

func (c converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (c converter) Default(in runtime.Object) { c.kind.Strategy.SetDefaults(in.(client.Object)) }

func (c converter) New(_ schema.GroupVersionKind) (runtime.Object, error) {
	return c.kind.Strategy.New(), nil
}
