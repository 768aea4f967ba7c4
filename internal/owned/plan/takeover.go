package plan

import (
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// TakeOverSteps decides what has to be done before the next apply. last is what the live object's annotation opblocks.dev/applied says
// about the last write. migrates is true if the last write was not an apply, so that the ownership of its fields has to be moved to our
// server-side apply. releases is true if fields have to be given to another field manager, so that the apply does not remove them.
func TakeOverSteps(d *owned.Desired, last record.LastApplied) (migrates, releases bool) {
	migrates = last.Method != record.ByApply
	releases = migrates && d.Options.CreateOnly != nil || last.Replicas && !DesiresReplicas(d.Object)
	return migrates, releases
}

// HandedOverFields returns the live values of the fields that were sent before and are not sent any more, and that have to stay. If there
// are none, it returns nil.
func HandedOverFields(d *owned.Desired, live client.Object) (map[string]any, error) {
	var trees [3]map[string]any
	for i, obj := range []client.Object{d.Full, d.Object, live} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
		trees[i] = content
	}
	fields, _ := onlyIn(trees[0], trees[1], trees[2]).(map[string]any)
	if holdsList(fields) {
		return nil, fmt.Errorf("%s: CreateOnly unsets a field in a list: the other fields and items of the list would be released too; leave lists as they are", d)
	}
	if spec, ok := trees[2]["spec"].(map[string]any); ok && !DesiresReplicas(d.Object) && spec["replicas"] != nil {
		if fields == nil {
			fields = map[string]any{}
		}
		released, _ := fields["spec"].(map[string]any)
		if released == nil {
			released = map[string]any{}
		}
		released["replicas"] = spec["replicas"]
		fields["spec"] = released
	}
	return fields, nil
}

// Overlaid returns a copy of tree in which the values of fields replace the values of the same fields.
func Overlaid(tree, fields map[string]any) map[string]any {
	if len(fields) == 0 {
		return tree
	}
	tree = maps.Clone(tree)
	if tree == nil {
		tree = map[string]any{}
	}
	for name, value := range fields {
		below, isMap := value.(map[string]any)
		if isMap {
			inner, _ := tree[name].(map[string]any)
			value = Overlaid(inner, below)
		}
		tree[name] = value
	}
	return tree
}

// onlyIn returns the live values of the fields in which full and part differ. If they do not differ, it returns nil.
func onlyIn(full, part, live any) any {
	f, fOK := full.(map[string]any)
	p, pOK := part.(map[string]any)
	l, lOK := live.(map[string]any)
	if !fOK || !pOK || !lOK {
		if reflect.DeepEqual(full, part) {
			return nil
		}
		return live
	}
	found := map[string]any{}
	for k, v := range f {
		if d := onlyIn(v, p[k], l[k]); d != nil {
			found[k] = d
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

func holdsList(v any) bool {
	switch v := v.(type) {
	case []any:
		return true
	case map[string]any:
		for _, e := range v {
			if holdsList(e) {
				return true
			}
		}
	}
	return false
}

// DesiresReplicas reports whether the object sets spec.replicas.
func DesiresReplicas(obj client.Object) bool {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Spec.Replicas != nil
	case *appsv1.StatefulSet:
		return obj.Spec.Replicas != nil
	case *appsv1.ReplicaSet:
		return obj.Spec.Replicas != nil
	case *unstructured.Unstructured:
		replicas, found, err := unstructured.NestedFieldNoCopy(obj.Object, "spec", "replicas")
		return err == nil && found && replicas != nil
	}
	return false
}
