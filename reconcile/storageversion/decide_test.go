package storageversion

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, time.May, 4, 10, 0, 0, 0, time.UTC)
	old, migrated := []string{"v1alpha1", "v1"}, []string{"v1"}
	asked := func(age time.Duration) clusterMigration {
		return clusterMigration{served: true, found: true, ours: true, created: now.Add(-age)}
	}
	running := func(age time.Duration) clusterMigration {
		m := asked(age)
		m.running = true
		return m
	}
	ended := asked(time.Hour)
	ended.ended = true
	foreign := ended
	foreign.ours = false
	for name, tc := range map[string]struct {
		reason string
		stored []string
		m      clusterMigration
		walked int64
		want   action
	}{
		"Stored":            {"an object may be in v1alpha1", old, clusterMigration{}, 0, write},
		"GoneVersion":       {"its objects can only be found by a walk", []string{"v1beta1", "v1"}, clusterMigration{}, 0, write},
		"OldVersionAlone":   {"no object was written since v1 is stored", []string{"v1alpha1"}, clusterMigration{}, 0, write},
		"WrittenBefore":     {"the CRD was rolled back and forth since the walk", old, clusterMigration{}, 3, write},
		"Migrated":          {"managers of versions that are not served may be left", migrated, clusterMigration{}, 0, repair},
		"ChangedDefinition": {"a version may have ceased to be served", migrated, clusterMigration{}, 2, repair},
		"Done":              {"nothing has changed since", migrated, clusterMigration{}, 3, nothing},
		"ClusterServes":     {"the cluster's controller does it", old, clusterMigration{served: true}, 0, request},
		"ClusterAsked":      {"it begins in a moment", old, asked(startPatience), 0, await},
		"ClusterIdle":       {"its controller is switched off", old, asked(startPatience + 1), 0, write},
		"ClusterRuns":       {"it takes some minutes", old, running(patience), 0, await},
		"ClusterHangs":      {"nobody knows why", old, running(patience + 1), 0, write},
		"ClusterFailed":     {"one object was refused, and ours names it", old, ended, 0, write},
		"ClusterDone":       {"another version needs the same name", migrated, ended, 0, remove},
		"ForeignMigration":  {"an administrator has created it", migrated, foreign, 3, nothing},
		"ForeignFailed":     {"an administrator's migration has failed", old, foreign, 3, write},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1", Served: true, Storage: true}}
			crd.Status.StoredVersions = tc.stored
			assert.Equal(t, tc.want, decide(crd, tc.m, tc.walked, now), tc.reason)
		})
	}
}

func TestServedVersions(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1alpha1"}, {Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true},
	}
	var names []string
	for _, v := range servedVersions(crd) {
		names = append(names, v.Name)
	}
	assert.Equal(t, []string{"v1", "v1beta1", "v2"}, names)
	assert.Equal(t, "v1alpha1", crd.Spec.Versions[0].Name, "the CustomResourceDefinition is not changed")
}

func TestRenameManagers(t *testing.T) {
	entry := func(manager, version, fields string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, APIVersion: version, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	for name, tc := range map[string]struct {
		reason   string
		in, want []metav1.ManagedFieldsEntry
		changed  bool
	}{
		"Served": {
			"such an entry converts",
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, update)},
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, update)}, false,
		},
		"OtherGroup": {
			"an entry of another group is not ours to judge",
			[]metav1.ManagedFieldsEntry{entry("user", "apps/v1alpha1", `{"f:a":{}}`, update)},
			[]metav1.ManagedFieldsEntry{entry("user", "apps/v1alpha1", `{"f:a":{}}`, update)}, false,
		},
		"Renamed": {
			"the manager still owns the field",
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1alpha1", `{"f:a":{}}`, apply)},
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, apply)}, true,
		},
		"Joined": {
			"the API server keeps only one of two entries with the same key",
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, update), entry("user", "example.com/v1alpha1", `{"f:b":{}}`, update)},
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{},"f:b":{}}`, update)}, true,
		},
		"TwoManagers": {
			"each owns its own fields",
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, update), entry("other", "example.com/v1alpha1", `{"f:b":{}}`, update)},
			[]metav1.ManagedFieldsEntry{entry("user", "example.com/v1", `{"f:a":{}}`, update), entry("other", "example.com/v1", `{"f:b":{}}`, update)}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := renameManagers(tc.in, "example.com", map[string]bool{"v1": true}, "v1")
			require.NoError(t, err)
			assert.Equal(t, tc.changed, changed)
			assert.Empty(t, cmp.Diff(tc.want, got), tc.reason)
		})
	}
}

func TestWithCondition(t *testing.T) {
	before, now := metav1.NewTime(time.Date(2026, time.May, 4, 10, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2026, time.May, 4, 11, 0, 0, 0, time.UTC))
	type conditions = []apiextensionsv1.CustomResourceDefinitionCondition
	established := apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}
	migrating := func(status apiextensionsv1.ConditionStatus, reason string, since metav1.Time) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.StorageMigrating, Status: status, Reason: reason, Message: "message", LastTransitionTime: since,
		}
	}
	for name, tc := range map[string]struct {
		reason   string
		in, want conditions
		changed  bool
	}{
		"New":        {"conditions of others stay", conditions{established}, conditions{established, migrating("False", reasonFailed, now)}, true},
		"Same":       {"nothing is written", conditions{migrating("False", reasonFailed, before)}, conditions{migrating("False", reasonFailed, before)}, false},
		"SameStatus": {"the status has not changed its value", conditions{migrating("False", reasonSucceeded, before)}, conditions{migrating("False", reasonFailed, before)}, true},
		"NewStatus":  {"the status has changed now", conditions{migrating("True", reasonRunning, before), established}, conditions{migrating("False", reasonFailed, now), established}, true},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Status.Conditions = tc.in
			got, changed := withCondition(crd, apiextensionsv1.ConditionFalse, reasonFailed, "message", now)
			assert.Equal(t, tc.changed, changed, tc.reason)
			assert.Empty(t, cmp.Diff(tc.want, got), tc.reason)
		})
	}
}

// TestObservedGeneration proves that the condition keeps the generation at which Kubernetes' own migration began, until all objects are
// migrated. The cluster's controller compares that generation before it changes storedVersions.
func TestObservedGeneration(t *testing.T) {
	const message, generation = "message", 3
	for name, tc := range map[string]struct {
		reason   string
		live     int64
		was, is  string
		observed int64
		changed  bool
	}{
		"Running":       {"the cluster's migration may run beside ours", 2, reasonFailed, reasonRunning, 2, true},
		"Failed":        {"the cluster's migration may still run", 2, reasonRunning, reasonFailed, 2, true},
		"Succeeded":     {"all objects are stored as this generation wants it", 2, reasonRunning, reasonSucceeded, generation, true},
		"SucceededLast": {"another generation has succeeded", 2, reasonSucceeded, reasonSucceeded, generation, true},
		"Same":          {"nothing is written", generation, reasonSucceeded, reasonSucceeded, generation, false},
		"NotKept":       {"an API server that does not keep the field is not asked again", 0, reasonSucceeded, reasonSucceeded, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
				Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionFalse, Reason: tc.was, Message: message, ObservedGeneration: tc.live,
			}}
			got, changed := withCondition(crd, apiextensionsv1.ConditionFalse, tc.is, message, metav1.Time{})
			assert.Equal(t, tc.changed, changed, tc.reason)
			require.Len(t, got, 1)
			assert.Equal(t, tc.observed, got[0].ObservedGeneration, tc.reason)
		})
	}
}
