package ownedresources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Some tools clear the managed fields of an object to save space. Then the API server does not know any more which fields
// are ours. At the next server-side apply it adds an entry of the manager before-first-apply, which owns all live fields.
// Fields that are dropped would stay for ever, since that manager owns them too. The answer to the apply shows the entry.

const (
	beforeFirstApply = "before-first-apply"
	// foundBefore is the manager's name afterwards, so that the entry is not taken for a new one.
	foundBefore = "opblocks-before-first-apply"
)

// reclaim gives our fields back to us after an apply, if the managed fields had been cleared.
//
// If the apply has sent what was last sent, our fields are those that it sent. Otherwise nobody knows which of the others
// were ours. All are taken over and so removed, except those that are surely of others: owner references, finalizers,
// labels and annotations of Kubernetes itself, and replicas or other fields that were handed over.
func (a *applier) reclaim(ctx context.Context, d *desired, last lastApplied, answer client.Object) (client.Object, error) {
	former, ours := formerEntry(answer), d.ourEntry(answer)
	if former < 0 || ours < 0 {
		return answer, nil
	}
	dropped := last.method != byOthers && last.hash != string(d.sum[:])
	for _, withSpec := range []bool{true, false} {
		taken := &fieldpath.Set{}
		if dropped {
			var err error
			if taken, err = d.reclaimable(answer, withSpec); err != nil {
				return nil, err
			}
		}
		patched, err := a.moveFields(ctx, d, answer, taken)
		if err != nil || taken.Empty() {
			return patched, err
		}
		applied, err := a.serverSideApply(ctx, d, patched)
		if err == nil || !isInvalid(err) || !withSpec {
			return applied, err
		}
		answer.SetResourceVersion(patched.GetResourceVersion()) // some of the fields cannot be removed
	}
	return answer, nil
}

// moveFields takes what we have applied from the former entry, and adds the fields that are taken to ours.
func (a *applier) moveFields(ctx context.Context, d *desired, answer client.Object, taken *fieldpath.Set) (client.Object, error) {
	entries := slices.Clone(answer.GetManagedFields())
	former, ours := formerEntry(answer), d.ourEntry(answer)
	formerSet, err := fieldSet(entries[former])
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	ourSet, err := fieldSet(entries[ours])
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	for i, set := range map[int]*fieldpath.Set{former: formerSet.Difference(ourSet).Difference(taken), ours: ourSet.Union(taken)} {
		if entries[i].FieldsV1, err = fieldsV1Of(set); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", d, err)
		}
	}
	entries[former].Manager = foundBefore
	patch, err := json.Marshal([]jsonPatchOperation{
		{"replace", "/metadata/resourceVersion", answer.GetResourceVersion()}, {"replace", "/metadata/managedFields", entries},
	})
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	patched := d.kind.empty()
	patched.SetNamespace(answer.GetNamespace())
	patched.SetName(answer.GetName())
	if err := a.jsonPatch(ctx, d, patched, patch); err != nil {
		return nil, fmt.Errorf("take back the fields of %s: %w", d, withoutValues(err))
	}
	return patched, nil
}

// reclaimable returns the fields of the former entry that an apply may remove.
func (d *desired) reclaimable(answer client.Object, withSpec bool) (*fieldpath.Set, error) {
	entries := answer.GetManagedFields()
	former, err := fieldSet(entries[formerEntry(answer)])
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	ours, err := fieldSet(entries[d.ourEntry(answer)])
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	released, err := d.createOnlyFields()
	if err != nil {
		return nil, err
	}
	taken := &fieldpath.Set{}
	former.Difference(ours).Difference(released).Iterate(func(path fieldpath.Path) {
		if d.mayRemove(path, withSpec) {
			taken.Insert(path.Copy())
		}
	})
	return taken, nil
}

// mayRemove reports whether a field that nobody is known to own may be removed.
func (d *desired) mayRemove(path fieldpath.Path, withSpec bool) bool {
	names := make([]string, len(path))
	for i, element := range path {
		if element.FieldName != nil {
			names[i] = *element.FieldName
		}
	}
	for i, name := range names {
		if name != "labels" && name != "annotations" {
			continue
		}
		if i == len(names)-1 || isOfKubernetes(names[i+1]) { // the map itself goes with its last key
			return false
		}
	}
	switch names[0] {
	case "apiVersion", "kind", "status":
		return false
	case "metadata":
		return len(names) == 3 && (names[1] == "labels" || names[1] == "annotations")
	case "spec":
		isReplicas := len(names) == 2 && names[1] == "replicas"
		return withSpec && (!isReplicas || setsReplicas(d.object))
	}
	return true
}

// isOfKubernetes reports whether a label or an annotation belongs to Kubernetes itself. The recommended labels of
// applications do not.
func isOfKubernetes(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found || domain == "app.kubernetes.io" {
		return false
	}
	for _, own := range []string{"kubernetes.io", "k8s.io"} {
		if domain == own || strings.HasSuffix(domain, "."+own) {
			return true
		}
	}
	return false
}

// createOnlyFields returns the fields that [CreateOnly] unsets.
func (d *desired) createOnlyFields() (*fieldpath.Set, error) {
	if d.options.createOnly == nil {
		return &fieldpath.Set{}, nil
	}
	var sets [2]*fieldpath.Set
	for i, method := range []writeMethod{byCreate, byApply} {
		tree, err := d.tree(method)
		if err != nil {
			return nil, err
		}
		value, err := d.kind.comparer.Schema().Type().FromUnstructured(tree)
		if err == nil {
			sets[i], err = value.ToFieldSet()
		}
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	return sets[0].Difference(sets[1]), nil
}

// formerEntry returns the index of the managed fields entry that the API server adds where there was none, or -1.
func formerEntry(obj client.Object) int {
	return slices.IndexFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == beforeFirstApply && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

func (d *desired) ourEntry(obj client.Object) int {
	return slices.IndexFunc(obj.GetManagedFields(), d.isOurs)
}

func fieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))
}

func fieldsV1Of(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	encoded, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(encoded)
	return fields, nil
}
