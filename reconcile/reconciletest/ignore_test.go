package reconciletest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func object(t *testing.T, content string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(content), &obj.Object))
	return obj
}

func TestIgnoreFields(t *testing.T) {
	const shop = `{"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"annotations": {"example.com/hash": "1", "example.com": "2"}},
		"status": {"history": [{"version": 1, "time": "a"}, {"version": 2, "time": "b"}], "nodes": ["x", "y"],
		"conditions": [{"type": "Ready", "message": "a"}, {"type": "Degraded", "message": "b"}], "sizes": {"s": {"n": 1}, "m": {"n": 2}}}}`
	tests := map[string]struct {
		reason string
		kind   string
		paths  []string
		want   string // what is left of the status, or of the annotations
	}{
		"Field":        {reason: "a field goes", kind: "Shop", paths: []string{"status.history", "status.nodes", "status.conditions"}, want: `{"sizes": {"s": {"n": 1}, "m": {"n": 2}}}`},
		"AllItems":     {reason: "a field of each item goes", kind: "Shop", paths: []string{"status.history[*].time"}, want: `{"history": [{"version": 1}, {"version": 2}]}`},
		"ItemByField":  {reason: "a number is compared as text", kind: "Shop", paths: []string{"status.history[version=2]"}, want: `{"history": [{"version": 1, "time": "a"}]}`},
		"ItemByIndex":  {reason: "the first item has index 0", kind: "Shop", paths: []string{"status.history[0]"}, want: `{"history": [{"version": 2, "time": "b"}]}`},
		"ItemByType":   {reason: "as reports name conditions", kind: "Shop", paths: []string{"status.conditions[Degraded].message"}, want: `{"conditions": [{"type": "Ready", "message": "a"}, {"type": "Degraded"}]}`},
		"ItemOfTexts":  {reason: "an item may be a text", kind: "Shop", paths: []string{"status.nodes[x]"}, want: `{"nodes": ["y"]}`},
		"MapValues":    {reason: "a bracket is for maps too", kind: "Shop", paths: []string{"status.sizes[*].n"}, want: `{"sizes": {"s": {}, "m": {}}}`},
		"Group":        {reason: "the group may follow", kind: "Shop.example.com", paths: []string{"status.nodes[*]"}, want: `{"nodes": []}`},
		"AnyKind":      {reason: "every kind", kind: "*", paths: []string{"status.nodes[*]"}, want: `{"nodes": []}`},
		"OtherKind":    {reason: "another kind is left alone", kind: "Job", paths: []string{"status.nodes"}, want: `{"nodes": ["x", "y"]}`},
		"OtherGroup":   {reason: "another group is another kind", kind: "Shop.example.org", paths: []string{"status.nodes"}, want: `{"nodes": ["x", "y"]}`},
		"Absent":       {reason: "a path that is not there removes nothing", kind: "Shop", paths: []string{"status.nodes.x", "spec.x[*].y", "status.nod"}, want: `{"nodes": ["x", "y"]}`},
		"KeyWithADot":  {reason: "keys with dots need no bracket", kind: "Shop", paths: []string{"metadata.annotations.example.com/hash"}, want: `{"annotations": {"example.com": "2"}}`},
		"KeyInBracket": {reason: "a key in a bracket", kind: "Shop", paths: []string{"metadata.annotations[example.com]"}, want: `{"annotations": {"example.com/hash": "1"}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, shop)
			reconciletest.Apply(reconciletest.Ignore{Fields: map[string][]string{tc.kind: tc.paths}}, obj)
			for key, want := range object(t, tc.want).Object {
				part := obj.Object["status"]
				if key == "annotations" {
					part = obj.Object["metadata"]
				}
				assert.Empty(t, cmp.Diff(want, part.(map[string]any)[key]), tc.reason)
			}
		})
	}
}

func TestIgnoreGenerated(t *testing.T) {
	ignore := func(obj *unstructured.Unstructured) {
		reconciletest.Apply(reconciletest.Ignore{SecretValues: true, Derived: []string{"example.com/hash"}}, obj)
	}
	secret := object(t, `{"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VjcmV0", "empty": ""}}`)
	ignore(secret)
	assert.Empty(t, cmp.Diff(map[string]any{"password": "ignored", "empty": ""}, secret.Object["data"]), "keys, and which are empty, still count")

	set := object(t, `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"annotations": {"opblocks.dev/applied": "x", "other": "y"}},
		"spec": {"template": {"metadata": {"annotations": {"example.com/hash": "1", "other": "y"}}}}}`)
	ignore(set)
	assert.Empty(t, cmp.Diff(object(t, `{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"annotations": {"other": "y"}},
		"spec": {"template": {"metadata": {"annotations": {"other": "y"}}}}}`).Object, set.Object))

	other := object(t, `{"apiVersion": "v1", "kind": "Service", "metadata": {"annotations": {"opblocks.dev/applied": "x"}}}`)
	ignore(other)
	assert.Equal(t, "x", other.GetAnnotations()["opblocks.dev/applied"], "what does not depend on random values still counts")
}

func TestIgnoreKinds(t *testing.T) {
	leaves := func(ignore reconciletest.Ignore) bool {
		job := object(t, `{"apiVersion": "batch/v1", "kind": "Job"}`)
		reconciletest.Apply(ignore, job)
		return len(job.Object) > 0
	}
	assert.False(t, leaves(reconciletest.Ignore{Kinds: []string{"Secret", "Job"}}))
	assert.False(t, leaves(reconciletest.Ignore{Kinds: []string{"Job.batch"}}))
	assert.True(t, leaves(reconciletest.Ignore{Kinds: []string{"Job.example.com", "Jobs"}}))
	assert.False(t, leaves(reconciletest.Ignore{
		Func: func(obj *unstructured.Unstructured) { obj.Object = nil }, Kinds: []string{"Job"}, Fields: map[string][]string{"*": {"spec"}}, SecretValues: true, Derived: []string{"x"},
	}),
		"what Func leaves out has no fields")
}

// starts counts the processes of a run.
type starts struct{ n int }

func (*starts) State() any { return nil }

// reports returns the scenario of an operator whose every process creates a ConfigMap.
func reports() reconciletest.Scenario {
	s := of(func(p *reconciletest.Process) shopFunc {
		count := p.External().(*starts)
		count.n++
		report := config(fmt.Sprint("report-", count.n))
		return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
			if err := c.Get(ctx, client.ObjectKeyFromObject(report), config("")); !isAbsent(err) {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, report.DeepCopy()))
		}
	}, reconciletest.Create(shop()))
	s.External = func() reconciletest.External { return &starts{} }
	return s
}

// Without Ignore.Kinds, runs are compared by which objects of a kind exist.
func TestIgnoreKindsInAnExploration(t *testing.T) {
	assert.NotEmpty(t, reconciletest.ExploreQuietly(t, reports()).Failures)
	s := reports()
	s.Ignore.Kinds = []string{"ConfigMap"}
	reconciletest.Explore(t, s)
}
