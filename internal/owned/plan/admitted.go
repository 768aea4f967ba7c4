package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// Admission may change an object when it is created: it extends a node selector, names a mirror in an image, or sets the storage class of a
// claim template. Most of these fields cannot be changed afterwards in a Pod, a Job or a StatefulSet. An apply of the desired object would
// undo the changes of admission, so the API server refuses the whole apply.
//
// A dry run of a creation shows what admission would make of the desired object now. This explains each field that the apply would change.
// If the dry run has the live value, admission has set this value, and the apply has to send it. If the dry run has another value, the
// operator desires a new value.

// Refused is what is known of an apply that the API server has refused.
type Refused struct {
	Admitted *owned.Admitted // the fields that have to be sent with their live values; nil for none
	wishes   *fieldpath.Set  // the other fields that the apply would add or change
}

// Examine finds out why the API server has refused an apply. asCreated is what the API server would make of the object if it was created
// now. It is nil if that is not known.
func Examine(d *owned.Desired, live *unstructured.Unstructured, asCreated client.Object) (*Refused, error) {
	want, err := Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	have, err := comparableTree(d.Kind, live)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	if asCreated == nil {
		changes := changedBy(d, live, want)
		return &Refused{wishes: changes.Modified.Union(changes.Added)}, nil
	}
	created, err := comparableTree(d.Kind, asCreated)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	trees, err := typedTrees(d.Kind, have, created)
	if err != nil { // the live object may have fields of a newer API server, which the schema lacks
		return &Refused{wishes: fieldpath.NewSet()}, nil
	}
	difference, err := trees[0].Compare(trees[1])
	if err != nil {
		return &Refused{wishes: fieldpath.NewSet()}, nil
	}
	changes, unlike := changedBy(d, live, want), difference.Modified.Union(difference.Removed)
	values := map[string]any{}
	if kept := changes.Modified.Difference(unlike); !kept.Empty() {
		if values, err = treeOf(trees[0].ExtractItems(kept, typed.WithAppendKeyFields())); err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	keepTolerations(d, live, want, values)
	r := &Refused{wishes: changes.Modified.Intersection(unlike).Union(changes.Added)}
	if len(values) > 0 {
		r.Admitted = &owned.Admitted{Values: values, Wish: want}
	}
	return r, nil
}

// comparableTree returns an object as a tree (decoded JSON), so that a live object and the answer to a dry run can be compared. If the kind
// has a Go type, the object is converted to this type first: the API server leaves out zeros that the Go type writes. The apiVersion and
// the kind of claim templates are left out: a stored StatefulSet has them, and the answer to a dry run does not.
func comparableTree(k *owned.Kind, obj client.Object) (map[string]any, error) {
	if u, untyped := obj.(*unstructured.Unstructured); untyped && k.Type != reflect.TypeFor[unstructured.Unstructured]() {
		same := reflect.New(k.Type).Interface().(client.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, same); err != nil {
			return nil, err
		}
		obj = same
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	templates, found, err := unstructured.NestedSlice(tree, "spec", "volumeClaimTemplates")
	if !found || err != nil {
		return tree, nil // the kind has no claim templates
	}
	for _, template := range templates {
		if fields, ok := template.(map[string]any); ok {
			delete(fields, "apiVersion")
			delete(fields, "kind")
		}
	}
	spec := maps.Clone(tree["spec"].(map[string]any))
	spec["volumeClaimTemplates"] = templates
	tree = maps.Clone(tree)
	tree["spec"] = spec
	return tree, nil
}

func typedTrees(k *owned.Kind, trees ...map[string]any) (values []*typed.TypedValue, err error) {
	for _, tree := range trees {
		value, err := k.Comparer.Schema().Type().FromUnstructured(tree, typed.AllowDuplicates)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// StillAdmitted returns the fields of a that still have to be sent with their live values. It leaves out each field whose desired value or
// live value has changed since a was made. If no field is left, it returns nil.
func StillAdmitted(d *owned.Desired, live client.Object, a *owned.Admitted) *owned.Admitted {
	want, err := Tree(d, record.ByApply)
	if err != nil {
		return nil
	}
	have, err := comparableTree(d.Kind, live)
	if err != nil {
		return nil
	}
	trees, err := typedTrees(d.Kind, a.Wish, want, a.Values, have)
	if err != nil {
		return nil
	}
	wishes, err := trees[0].Compare(trees[1])
	if err != nil {
		return nil
	}
	drift, err := trees[2].Compare(trees[3])
	if err != nil {
		return nil
	}
	lost := wishes.Modified.Union(wishes.Removed).Union(wishes.Added).Union(drift.Modified).Union(drift.Removed)
	values, err := treeOf(trees[2].RemoveItems(lost))
	if err != nil || len(values) == 0 {
		return nil
	}
	return &owned.Admitted{Values: values, Wish: want}
}

// withAdmitted returns the tree of an apply, with the live values of the fields that admission has set.
func withAdmitted(d *owned.Desired, tree map[string]any) (map[string]any, error) {
	if d.Admitted == nil {
		return tree, nil
	}
	types := d.Kind.Comparer.Schema().Type()
	want, err := types.FromUnstructured(tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	values, err := types.FromUnstructured(d.Admitted.Values)
	if err == nil {
		want, err = want.Merge(values)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return treeOf(want)
}

// changedBy returns the fields of a live object that an apply would add, change or remove. It leaves out the fields in notExamined. A field
// that it returns as removed may be a default, which the API server sets again.
func changedBy(d *owned.Desired, live *unstructured.Unstructured, want map[string]any) *typed.Comparison {
	same := &typed.Comparison{Removed: fieldpath.NewSet(), Modified: fieldpath.NewSet(), Added: fieldpath.NewSet()}
	merged, _, err := MergeInto(d, live, want)
	if err != nil {
		return same
	}
	trees, err := typedTrees(d.Kind, live.Object, merged)
	if err != nil {
		return same
	}
	changes, err := trees[0].Compare(trees[1])
	if err != nil {
		return same
	}
	return changes.ExcludeFields(notExamined)
}

// notExamined are the fields that can always be changed, and the number of replicas, which others may set.
var notExamined = fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("spec", "replicas"))

func treeOf(value *typed.TypedValue) (map[string]any, error) {
	encoded, err := json.Marshal(value.AsValue().Unstructured())
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	return tree, utiljson.Unmarshal(encoded, &tree)
}
