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

// NewFieldManagers returns the field managers of a kind, by subresource. statusResets are the paths that a write of the status subresource
// resets. A request never owns the fields that its subresource resets.
func NewFieldManagers(k *Kind, types managedfields.TypeConverter, statusResets ...fieldpath.Path) map[string]*managedfields.FieldManager {
	return newFieldManagers(k, []*Kind{k}, types, converter{kind: k}, statusResets)
}

// NewVersionedFieldManagers is like NewFieldManagers, for a kind with several versions. types has the types of all versions.
func NewVersionedFieldManagers(k *Kind, types managedfields.TypeConverter, convert Convert, statusResets ...fieldpath.Path) map[string]*managedfields.FieldManager {
	return newFieldManagers(k, k.Versions.All, types, converter{kind: k, convert: convert}, statusResets)
}

func newFieldManagers(k *Kind, versions []*Kind, types managedfields.TypeConverter, c converter, statusResets []fieldpath.Path) map[string]*managedfields.FieldManager {
	object, status := map[fieldpath.APIVersion]*fieldpath.Set{}, map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, v := range versions {
		if v.HasStatus {
			version := fieldpath.APIVersion(v.GVK.GroupVersion().String())
			object[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
			status[version] = fieldpath.NewSet(statusResets...)
		}
	}
	managers := map[string]*managedfields.FieldManager{"": newFieldManager(k, types, c, "", object)}
	if k.HasStatus {
		managers[StatusSubresource] = newFieldManager(k, types, c, StatusSubresource, status)
	}
	return managers
}

// NewFieldManager returns the field manager of one subresource, which resets no fields.
func NewFieldManager(k *Kind, types managedfields.TypeConverter, subresource string) *managedfields.FieldManager {
	return newFieldManager(k, types, converter{kind: k}, subresource, nil)
}

// newFieldManager returns the field manager of one subresource, which resets the given fields.
func newFieldManager(k *Kind, types managedfields.TypeConverter, c converter, subresource string, reset map[fieldpath.APIVersion]*fieldpath.Set) *managedfields.FieldManager {
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	if len(reset) > 0 {
		filters = fieldpath.NewExcludeFilterSetMap(reset)
	}
	m, err := managedfields.NewDefaultCRDFieldManager(withoutManagers{types}, c, c, c, k.GVK, k.GVK.GroupVersion(), subresource, filters)
	if err != nil {
		panic(err) // cannot happen: its only error is a missing type converter
	}
	return m
}

// converter converts and creates objects and sets defaults for a field manager.
type converter struct {
	kind    *Kind
	convert Convert // nil: the kind has one version, so it only decodes unstructured objects that are the result of a merge
}

var (
	_ runtime.ObjectConvertor = converter{}
	_ runtime.ObjectDefaulter = converter{}
	_ runtime.ObjectCreater   = converter{}
)

func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if c.convert != nil {
		from := in.GetObjectKind().GroupVersionKind()
		to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
		if !ok {
			return nil, fmt.Errorf("%v is unstructured and is not suitable for converting to %q", from, target)
		}
		return c.convert(in.(client.Object), to.GroupVersion())
	}
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
