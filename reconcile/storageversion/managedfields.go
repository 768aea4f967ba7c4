package storageversion

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// renameManagers returns managedFields in which each entry has a served version of the group. If an entry has another version of the group,
// it gets the target version, and keeps its paths. If no entry has to change, renameManagers returns false.
//
// As soon as a version is removed from the CustomResourceDefinition, the API server cannot convert the object to compare it with an
// entry of that version. Then it refuses every server-side apply of the object, by any manager ("request to convert CR to an invalid
// group/version"), and no longer tracks what other writes change.
//
// With the conversion strategy None the paths are the same in all versions. With a webhook, an entry may have a path that the target
// version does not have. Such a path has no effect.
func renameManagers(entries []metav1.ManagedFieldsEntry, group string, served map[string]bool, target string) ([]metav1.ManagedFieldsEntry, bool, error) {
	isStale := func(e metav1.ManagedFieldsEntry) bool {
		version, err := schema.ParseGroupVersion(e.APIVersion)
		return err == nil && version.Group == group && !served[version.Version]
	}
	if !slices.ContainsFunc(entries, isStale) {
		return entries, false, nil
	}
	var renamed []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if isStale(entry) {
			entry.APIVersion = schema.GroupVersion{Group: group, Version: target}.String()
		}
		same := slices.IndexFunc(renamed, func(other metav1.ManagedFieldsEntry) bool { return isSameManager(entry, other) })
		if same < 0 {
			renamed = append(renamed, entry)
			continue
		}
		fields, err := union(renamed[same].FieldsV1, entry.FieldsV1)
		if err != nil {
			return nil, false, fmt.Errorf("read the managedFields of manager %s: %w", entry.Manager, err)
		}
		renamed[same].FieldsV1 = fields
	}
	return renamed, true, nil
}

// isSameManager reports whether the API server would treat two entries as one manager, and keep only the second entry.
func isSameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
}

// union returns the fields that are in a or in b.
func union(a, b *metav1.FieldsV1) (*metav1.FieldsV1, error) {
	all := fieldpath.NewSet()
	for _, fields := range []*metav1.FieldsV1{a, b} {
		if fields == nil {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(fields.GetRawReader()); err != nil {
			return nil, err
		}
		all = all.Union(&set)
	}
	raw, err := all.ToJSON()
	return metav1.NewFieldsV1(string(raw)), err
}
