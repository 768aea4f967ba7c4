package plan

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/internal/owned"
)

// keepTolerations adds to values the tolerations of a live Pod that another manager has added. The API server refuses to remove or change a
// toleration of a Pod, and an apply replaces the list as a whole.
func keepTolerations(d *owned.Desired, live *unstructured.Unstructured, want, values map[string]any) {
	path, isOther := []string{"spec", "tolerations"}, func(manager string) bool { return manager != string(d.Owner.FieldManager) }
	wanted, _, _ := unstructured.NestedSlice(want, path...)
	all, _, _ := unstructured.NestedSlice(live.Object, path...)
	if d.Kind.GVK.GroupKind() != (schema.GroupKind{Kind: "Pod"}) || len(wanted) == 0 || !isWrittenBy(live, tolerationsPath, isOther) {
		return
	}
	for _, toleration := range wanted {
		i := slices.IndexFunc(all, func(known any) bool { return isSameToleration(known, toleration) })
		if i < 0 {
			all = append(all, toleration)
		} else {
			all[i] = toleration
		}
	}
	_ = unstructured.SetNestedSlice(values, all, path...) // it cannot fail, because spec is a map
}

// isSameToleration reports whether two tolerations differ at most in their tolerationSeconds, which may be changed.
func isSameToleration(a, b any) bool {
	is, isMap := a.(map[string]any)
	other, otherIsMap := b.(map[string]any)
	return isMap && otherIsMap && !slices.ContainsFunc([]string{"key", "operator", "value", "effect"}, func(name string) bool {
		return !reflect.DeepEqual(is[name], other[name])
	})
}

var tolerationsPath = fieldpath.MakePathOrDie("spec", "tolerations")
