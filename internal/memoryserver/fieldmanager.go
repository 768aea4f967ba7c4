package memoryserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/internal/compare"
)

const statusSubresource = "status"

// fieldManagers gives the managers of a built-in kind. What a subresource does not write is reset
// by it, and so is owned by nobody who writes there.
func fieldManagers(k *kind) map[string]*managedfields.FieldManager {
	types := compare.BuiltInTypes()
	managers := map[string]*managedfields.FieldManager{}
	if !k.status {
		managers[""] = newFieldManager(k, types, "", nil)
		return managers
	}
	managers[""] = newFieldManager(k, types, "", fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	reset := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	for _, path := range alsoResetByStatus[k.gvk.GroupKind()] {
		reset.Insert(path)
	}
	managers[statusSubresource] = newFieldManager(k, types, statusSubresource, reset)
	return managers
}

// alsoResetByStatus is what the status subresource of a kind resets beside the spec.
var alsoResetByStatus = map[schema.GroupKind][]fieldpath.Path{
	{Group: "apps", Kind: "Deployment"}: {fieldpath.MakePathOrDie("metadata", "labels")},
	{Kind: "Pod"}: {
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"), fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	},
}

func newFieldManager(k *kind, types managedfields.TypeConverter, subresource string, reset *fieldpath.Set) *managedfields.FieldManager {
	var filters map[fieldpath.APIVersion]fieldpath.Filter
	if reset != nil {
		filters = fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
			fieldpath.APIVersion(k.gvk.GroupVersion().String()): reset,
		})
	}
	c := conversion{k}
	m, err := managedfields.NewDefaultCRDFieldManager(withoutManagers{types}, c, c, c, k.gvk, k.gvk.GroupVersion(), subresource, filters)
	if err != nil {
		panic(err) // it has only the error of a missing type converter
	}
	return m
}

// conversion is what a field manager needs to know of a kind. There is one version, so that
// converting means at most to leave the untyped form in which merging is done.
type conversion struct{ kind *kind }

var (
	_ runtime.ObjectConvertor = conversion{}
	_ runtime.ObjectDefaulter = conversion{}
	_ runtime.ObjectCreater   = conversion{}
)

func (c conversion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	merged, untyped := in.(*unstructured.Unstructured)
	if _, held := c.kind.rules.(*custom); held || !untyped {
		return in, nil
	}
	return c.kind.rules.fromMap(merged.Object, false)
}

func (c conversion) Convert(_, _, _ any) error {
	return fmt.Errorf("%s is converted by version only", c.kind.gvk)
}

func (c conversion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (c conversion) Default(in runtime.Object) { c.kind.rules.setDefaults(in.(client.Object)) }

func (c conversion) New(_ schema.GroupVersionKind) (runtime.Object, error) {
	return c.kind.rules.empty(), nil
}
