package fieldmanager

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAreCleared(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const (
		update = metav1.ManagedFieldsOperationUpdate
		apply  = metav1.ManagedFieldsOperationApply
		record = `{"f:metadata":{"f:annotations":{"f:opblocks.dev/applied":{}}}}`
	)
	tests := map[string]struct {
		reason     string
		annotation string
		entries    []metav1.ManagedFieldsEntry
		want       bool
	}{
		"NotApplied": {
			reason:  "It is no child that was applied.",
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", update, "", "{}")},
		},
		"Created": {
			reason:     "The operator reads a child past the cache before it applies it for the first time.",
			annotation: "v1:created:1", entries: []metav1.ManagedFieldsEntry{entry("kubectl", update, "", "{}")},
		},
		"NoEntries": {
			reason:     "The next apply finds out whether they were cleared.",
			annotation: "v1:applied:1",
		},
		"Ours": {
			reason:     "The operator's entry is there.",
			annotation: "v1:applied:1",
			entries: []metav1.ManagedFieldsEntry{
				entry("web", apply, "", record), entry("status", apply, "status", "{}"), entry("kubectl", update, "", "{}"),
				entry(BeforeFirstApply, update, "status", "{}"),
			},
		},
		"BeforeFirstApply": {
			reason:     "The operator has applied the child since, and has not taken its fields back.",
			annotation: "v1:applied:1",
			entries:    []metav1.ManagedFieldsEntry{entry("web", apply, "", record), entry(BeforeFirstApply, update, "", "{}")},
			want:       true,
		},
		"OnlyOfOthers": {
			reason:     "A controller has applied the status since, and somebody has patched the object.",
			annotation: "v1:applied:1",
			entries:    []metav1.ManagedFieldsEntry{entry("status", apply, "status", record), entry("kubectl", update, "", record), {Operation: apply}},
			want:       true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{ManagedFields: tc.entries}
			if tc.annotation != "" {
				obj.Annotations = map[string]string{"opblocks.dev/applied": tc.annotation}
			}
			if got := AreCleared(obj); got != tc.want {
				t.Errorf("%s want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
