package state

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOfBuiltInKinds(t *testing.T) {
	tests := map[string]struct {
		reason      string
		one, other  string // objects as JSON
		differences []string
	}{
		"NamesOfRevisions": {
			reason: "a name has a hash of the template, which is compared itself",
			one:    `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "status": {"currentRevision": "a-1", "updateRevision": "a-1"}}`,
			other:  `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "status": {"currentRevision": "a-2", "updateRevision": "a-2"}}`,
		},
		"UnfinishedUpdate": {
			reason:      "whether the update is complete is compared",
			one:         `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "status": {"currentRevision": "a-1", "updateRevision": "a-1"}}`,
			other:       `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "status": {"currentRevision": "a-1", "updateRevision": "a-2"}}`,
			differences: []string{`StatefulSet a: status.currentRevision: "that of the update" without faults, "an earlier one" here`},
		},
		"RevisionOfAStatefulSet": {
			reason: "its controller stores each template that there was",
			one: `{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a-1",
				"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "controller": true}]}}`,
		},
		"RevisionOfADeletedStatefulSet": {
			reason: "it stays without an owner if the dependents are left",
			one: `{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a-1",
				"labels": {"controller.kubernetes.io/hash": "1"}}}`,
		},
		"RevisionOfTheOperator": {
			reason:      "one that the operator stores is compared",
			one:         `{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a-1"}}`,
			differences: []string{"ControllerRevision a-1: present without faults, absent here"},
		},
		"ResumedJob": {
			reason: "whether the controller has seen it suspended is a matter of time",
			one:    `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Suspended", "status": "False"}]}}`,
			other:  `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "status": {}}`,
		},
		"SuspendedJob": {
			reason:      "a Job that is suspended is compared",
			one:         `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}`,
			other:       `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "status": {}}`,
			differences: []string{`Job a: status.conditions: [{"status":"True","type":"Suspended"}] without faults, nothing here`},
		},
		"ClaimThatHasGrown": {
			reason: "one that was created as large has the same capacity, and says nothing of its growth",
			one: `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
				"status": {"capacity": {"storage": "2Gi"}, "allocatedResources": {"storage": "2Gi"}}}`,
			other: `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "status": {"capacity": {"storage": "2Gi"}}}`,
		},
		"ClaimThatHasNotGrown": {
			reason:      "the capacity is compared",
			one:         `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "status": {"capacity": {"storage": "2Gi"}}}`,
			other:       `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "status": {"capacity": {"storage": "1Gi"}}}`,
			differences: []string{`PersistentVolumeClaim a: status.capacity.storage: "2Gi" without faults, "1Gi" here`},
		},
	}
	stateOf := func(t *testing.T, content string) State {
		t.Helper()
		var objects []client.Object
		if content != "" {
			obj := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal([]byte(content), &obj.Object))
			obj.SetUID("00000000-0000-4000-8000-000000000001")
			objects = append(objects, obj)
		}
		s, err := Of(objects, &Identities{}, "", nil)
		require.NoError(t, err)
		return s
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Difference(stateOf(t, tc.one), stateOf(t, tc.other))
			if diff := cmp.Diff(tc.differences, got); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

// If ignore empties an object, the object is left out of the state.
func TestOfLeavesOut(t *testing.T) {
	s, err := Of([]client.Object{&unstructured.Unstructured{Object: map[string]any{"kind": "Job", "metadata": map[string]any{"name": "a"}}}}, &Identities{}, "",
		func(obj *unstructured.Unstructured) { obj.Object = nil })
	require.NoError(t, err)
	if len(s) > 0 {
		t.Errorf("got %v", s)
	}
}
