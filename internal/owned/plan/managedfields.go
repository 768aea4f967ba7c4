package plan

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/opblocks/opblocks/internal/owned"
)

// hasFormerEntry reports whether an object may have the managed fields entry that [FormerEntry] finds. It is a cheap check before:
// GetManagedFields of an unstructured object would decode and copy all entries.
func hasFormerEntry(obj client.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return FormerEntry(obj) >= 0
	}
	field, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	entries, _ := field.([]any)
	return slices.ContainsFunc(entries, func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return fields["manager"] == beforeFirstApply
	})
}

// FormerEntry returns the index of the managed fields entry of the manager before-first-apply, or -1. The API server adds this entry at a
// server-side apply of an object without managed fields.
func FormerEntry(obj client.Object) int {
	return slices.IndexFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == beforeFirstApply && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

// OurEntry returns the index of the managed fields entry of our server-side applies, or -1.
func OurEntry(d *owned.Desired, obj client.Object) int {
	return slices.IndexFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return isOurs(d, entry) })
}

// FormerFields returns two sets: former are the fields that may have been ours before the managed fields were cleared, and owned are the
// fields that managers own. former is the entry of before-first-apply. If the object has no such entry, former is all fields that no
// manager owns.
func FormerFields(d *owned.Desired, live *unstructured.Unstructured) (former, owned *fieldpath.Set, err error) {
	at := FormerEntry(live)
	former, owned = &fieldpath.Set{}, &fieldpath.Set{}
	for i, entry := range live.GetManagedFields() {
		set, err := fieldSet(entry)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("managed fields of %s: %w", d, err)
		case i == at:
			former = set
		default:
			owned = owned.Union(set)
		}
	}
	if at < 0 {
		value, err := d.Kind.Comparer.Schema().Type().FromUnstructured(live.Object, typed.AllowDuplicates)
		if err == nil {
			former, err = value.ToFieldSet()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("fields of %s: %w", d, err)
		}
	}
	return former.Difference(owned), owned, nil
}

// isOurs reports whether a managed fields entry is the entry of our server-side applies.
func isOurs(d *owned.Desired, entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == string(d.Owner.FieldManager) && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// RequestsStorage reports whether our field manager owns the storage request of a live PersistentVolumeClaim: we have written it, and
// nobody has changed it since.
func RequestsStorage(d *owned.Desired, claim client.Object) bool {
	return isWrittenBy(claim, fieldpath.MakePathOrDie("spec", "resources", "requests", "storage"), func(manager string) bool {
		return manager == string(d.Owner.FieldManager)
	})
}

// isWrittenBy reports whether a field manager for which the function returns true owns a field.
func isWrittenBy(live client.Object, path fieldpath.Path, is func(manager string) bool) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		set, err := fieldSet(entry)
		return err == nil && is(entry.Manager) && set.Has(path)
	})
}

func fieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))
}

// FieldsV1Of returns a set of fields in the format of managed fields.
func FieldsV1Of(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	encoded, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(encoded)
	return fields, nil
}
