package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// Some tools clear the managed fields of an object to save space. Then the API server does not know any more which fields are ours. At the
// next server-side apply, it adds an entry of the manager before-first-apply, which owns all live fields. If we then drop a field, it
// stays, because that manager owns it too. The answer to the apply shows the entry.
//
// If a controller applies the status before we apply, the API server adds no such entry for our fields. If we then drop a field, nobody
// owns it, and it stays as well. The live object before the apply shows that our entry is missing.

const (
	beforeFirstApply = fieldmanager.BeforeFirstApply
	// FoundBefore is a new name for the manager before-first-apply. When package write has removed our fields from its entry, it renames the
	// manager. So a later entry of before-first-apply is known to be new.
	FoundBefore = "opblocks-before-first-apply"
)

// IsReclaimable reports whether the managed fields entry of before-first-apply may still own fields of ours: the managed fields were
// cleared before our last apply, and our fields were not removed from that entry yet. The object has that entry and our own entry.
func IsReclaimable(d *owned.Desired, obj client.Object) bool {
	return hasFormerEntry(obj) && FormerEntry(obj) >= 0 && OurEntry(d, obj) >= 0
}

// IsLost reports whether our managed fields entry was cleared, and other managers have written entries since. last is what the live
// object's annotation opblocks.dev/applied says.
func IsLost(d *owned.Desired, last record.LastApplied, live client.Object) bool {
	return last.Method != record.ByOthers && len(live.GetManagedFields()) > 0 && OurEntry(d, live) < 0 && FormerEntry(live) < 0
}

// HasDropped reports whether we may have dropped a field since the managed fields were cleared. last is what the live object's annotation
// opblocks.dev/applied said before the apply, and answer is the API server's answer to the apply.
//
// If this apply has sent something else than the last write, it may have dropped a field. If it has sent the same, an earlier apply A may
// have dropped one: the managed fields were cleared, then A dropped the field, then the process died before it removed our fields from the
// entry of before-first-apply. In that case A wrote the annotation, so the entry does not own the annotation. If the entry does not own our
// owner reference, the object was not ours when the managed fields were cleared, so nothing was dropped.
func HasDropped(d *owned.Desired, last record.LastApplied, answer client.Object) (bool, error) {
	former := FormerEntry(answer)
	switch {
	case last.Method == record.ByOthers:
		return false, nil
	case last.Hash != string(d.Sum[:]):
		return true, nil
	case last.Method != record.ByApply || former < 0:
		return false, nil
	}
	set, err := fieldSet(answer.GetManagedFields()[former])
	if err != nil {
		return false, fmt.Errorf("managed fields of %s: %w", d, err)
	}
	ours := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(d.Owner.Reference.UID)))
	return set.Has(ours) && !set.Has(recordPath), nil
}

var recordPath = fieldpath.MakePathOrDie("metadata", "annotations", record.Applied)

// Removable returns the fields of a set that may be removed. It leaves out the fields that may belong to others, and each field that
// contains such a field or a field in owned.
func Removable(d *owned.Desired, fields, owned *fieldpath.Set, withSpec bool) (*fieldpath.Set, error) {
	createOnly, err := createOnlyFields(d)
	if err != nil {
		return nil, err
	}
	removable := &fieldpath.Set{}
	fields.Difference(createOnly).Iterate(func(path fieldpath.Path) {
		if mayRemove(d, path, withSpec) {
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

// Without returns a copy of a tree without some fields. If a struct becomes empty by that, and the struct is desired, it stays.
func Without(d *owned.Desired, tree map[string]any, fields *fieldpath.Set) (map[string]any, error) {
	want, err := Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	schema := d.Kind.Comparer.Schema()
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
	applyschema.NullEmptied(schema, tree, kept)
	schema.FillEmpty(want, kept)
	return kept, nil
}

// mayRemove reports whether a field may be removed although nobody is known to own it.
func mayRemove(d *owned.Desired, path fieldpath.Path, withSpec bool) bool {
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
		return withSpec && (!isReplicas || DesiresReplicas(d.Object))
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

// createOnlyFields returns the fields that [ownedresources.Child.CreateOnly] unsets.
func createOnlyFields(d *owned.Desired) (*fieldpath.Set, error) {
	if d.Options.CreateOnly == nil {
		return &fieldpath.Set{}, nil
	}
	var sets [2]*fieldpath.Set
	for i, method := range []record.Method{record.ByCreate, record.ByApply} {
		tree, err := Tree(d, method)
		if err != nil {
			return nil, err
		}
		value, err := d.Kind.Comparer.Schema().Type().FromUnstructured(tree)
		if err == nil {
			sets[i], err = value.ToFieldSet()
		}
		if err != nil {
			return nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	return sets[0].Difference(sets[1]), nil
}
