package ownedresources

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/record"
)

// Some tools clear the managed fields of an object to save space. Then the API server does not know any more which fields
// are ours. At the next server-side apply it adds an entry of the manager before-first-apply, which owns all live fields.
// Fields that are dropped would stay for ever, since that manager owns them too. The answer to the apply shows the entry.
//
// If a controller applies the status before we apply, the API server adds no such entry for our fields. Then nobody owns
// the fields that are dropped, and they would stay as well. The live object before the apply shows that our entry is
// missing.

const (
	beforeFirstApply = fieldmanager.BeforeFirstApply
	// foundBefore is the name that reclaim gives this manager, so that its entry is not taken for a new one.
	foundBefore = "opblocks-before-first-apply"
)

// reclaim gives our fields back to us after an apply, if the managed fields had been cleared. before is the live object
// before the apply, and answer the API server's answer.
//
// If the apply has sent the same as the write before it, our fields are the fields that it sent. Otherwise nobody knows
// which other fields were ours. All of them are removed, except fields that surely belong to others: owner references,
// finalizers, labels and annotations of Kubernetes itself, and replicas or other fields that were handed over.
//
// One patch takes our fields from the entry of before-first-apply, and removes the other fields. It has the live
// resource version as precondition. If it fails, or the process ends before it, the entry stays, and the next pass
// sends the patch: see [isReclaimable].
func (a *applier) reclaim(ctx context.Context, d *desired, last record.LastApplied, before, answer client.Object) (client.Object, error) {
	lost := isLost(d, last, before)
	if !lost && !isReclaimable(d, answer) {
		return answer, nil
	}
	dropped, err := d.hasDropped(last, answer)
	if err != nil || lost && !dropped {
		return answer, err
	}
	for range maxAttempts { // controllers may be faster
		live, readErr := a.readTree(ctx, d)
		if readErr != nil {
			return nil, fmt.Errorf("read %s: %w", d, readErr)
		}
		if err := d.owner.mayWrite(d, live); err != nil {
			return nil, err
		}
		if d.ourEntry(live) < 0 || !lost && !isReclaimable(d, live) {
			return answer, nil
		}
		var reclaimed client.Object
		if reclaimed, err = a.reclaimFrom(ctx, d, live, dropped, true); isInvalid(err) && dropped {
			reclaimed, err = a.reclaimFrom(ctx, d, live, dropped, false) // something in the spec cannot be removed
		}
		if !apierrors.IsConflict(err) {
			return reclaimed, err
		}
	}
	return nil, err
}

// isReclaimable reports whether the managed fields had been cleared before our last apply, and our fields have not been
// taken back since.
func isReclaimable(d *desired, obj client.Object) bool {
	return hasFormerEntry(obj) && formerEntry(obj) >= 0 && d.ourEntry(obj) >= 0
}

// isLost reports whether our managed fields entry has been cleared, and others have written entries since. last is the
// record in the live object.
func isLost(d *desired, last record.LastApplied, live client.Object) bool {
	return last.Method != record.ByOthers && len(live.GetManagedFields()) > 0 && d.ourEntry(live) < 0 && formerEntry(live) < 0
}

// hasDropped reports whether a field may have been dropped since the managed fields were cleared. last is the record
// before the apply, and answer is the API server's answer to the apply.
//
// If this apply has sent the same as the last write, that write may have been an apply A that dropped a field: the
// managed fields were cleared, then A dropped the field, then the process died before it took the fields back. We see
// it because A wrote the record opblocks.dev/applied: the entry of before-first-apply does not own it. If that entry
// does not own our owner reference, the object was not ours when the managed fields were cleared, so nothing was
// dropped.
func (d *desired) hasDropped(last record.LastApplied, answer client.Object) (bool, error) {
	former := formerEntry(answer)
	switch {
	case last.Method == record.ByOthers:
		return false, nil
	case last.Hash != string(d.sum[:]):
		return true, nil
	case last.Method != record.ByApply || former < 0:
		return false, nil
	}
	set, err := fieldSet(answer.GetManagedFields()[former])
	if err != nil {
		return false, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	ours := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(d.owner.reference.UID)))
	return set.Has(ours) && !set.Has(recordPath), nil
}

var recordPath = fieldpath.MakePathOrDie("metadata", "annotations", record.Applied)

// reclaimFrom takes our fields from the entry of before-first-apply. If something was dropped, it also removes from the
// live object what is not desired.
func (a *applier) reclaimFrom(ctx context.Context, d *desired, live *unstructured.Unstructured, dropped, withSpec bool) (client.Object, error) {
	formerSet, owned, err := d.formerFields(live)
	if err != nil {
		return nil, err
	}
	tree := live.Object
	if dropped {
		removed, err := d.removable(formerSet, owned, withSpec)
		if err != nil {
			return nil, err
		}
		if tree, err = d.without(tree, removed); err != nil {
			return nil, err
		}
		formerSet = formerSet.Difference(removed)
	}
	entries := live.GetManagedFields()
	if former := formerEntry(live); former >= 0 {
		entries[former].Manager = foundBefore
		if entries[former].FieldsV1, err = fieldsV1Of(formerSet); err != nil {
			return nil, fmt.Errorf("managed fields of %s: %w", d, err)
		}
	}
	patch, err := replacePatch(d, live, tree, entries, record.ByApply)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	return a.replace(ctx, d, patch)
}

// reclaimable returns the fields that [applier.reclaim] removes after an apply with this answer.
func (d *desired) reclaimable(answer client.Object) (*fieldpath.Set, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	former, owned, err := d.formerFields(&unstructured.Unstructured{Object: content})
	if err != nil {
		return nil, err
	}
	return d.removable(former, owned, true)
}

// removable returns the fields that may be removed, because they do not surely belong to others. It leaves out a field
// that contains a field of others, or a field that is owned.
func (d *desired) removable(fields, owned *fieldpath.Set, withSpec bool) (*fieldpath.Set, error) {
	createOnly, err := d.createOnlyFields()
	if err != nil {
		return nil, err
	}
	removable := &fieldpath.Set{}
	fields.Difference(createOnly).Iterate(func(path fieldpath.Path) {
		if d.mayRemove(path, withSpec) {
			removable.Insert(path.Copy())
		}
	})
	kept := fields.Difference(removable).Union(owned).Union(createOnly)
	holding := &fieldpath.Set{}
	removable.Iterate(func(path fieldpath.Path) {
		below := kept
		for _, element := range path {
			below = below.WithPrefix(element)
		}
		if !below.Empty() {
			holding.Insert(path.Copy())
		}
	})
	return removable.Difference(holding), nil
}

// without returns a copy of a tree without some fields. Empty structs that are desired stay.
func (d *desired) without(tree map[string]any, fields *fieldpath.Set) (map[string]any, error) {
	want, err := d.tree(record.ByApply)
	if err != nil {
		return nil, err
	}
	schema := d.kind.comparer.Schema()
	value, err := schema.Type().FromUnstructured(tree, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	encoded, err := json.Marshal(value.RemoveItems(fields).AsValue().Unstructured())
	if err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	kept := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &kept); err != nil {
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	}
	schema.FillEmpty(want, kept)
	return kept, nil
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
		if i == len(names)-1 || isOfKubernetes(names[i+1]) { // removing the last key also removes the map
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

// createOnlyFields returns the fields that [Child.CreateOnly] unsets.
func (d *desired) createOnlyFields() (*fieldpath.Set, error) {
	if d.options.createOnly == nil {
		return &fieldpath.Set{}, nil
	}
	var sets [2]*fieldpath.Set
	for i, method := range []record.Method{record.ByCreate, record.ByApply} {
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
