package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// newSprocketServer returns an environment for the kind of sprockets.yaml. If knownSchema is true, the applier knows the schema of the
// kind, as it does with a manager.
func newSprocketServer(t *testing.T, knownSchema bool) *ownedtest.Server {
	t.Helper()
	env := newRealServer(t)
	if knownSchema {
		env.Applier.Kinds = env.Published(t, sprocket(t, env, "{}"))
	}
	return env
}

func sprocket(t *testing.T, env *ownedtest.Server, content string) *unstructured.Unstructured {
	t.Helper()
	u := ownedtest.FromYAML(t, content)
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.opblocks.dev", Version: "v1", Kind: "Sprocket"})
	u.SetNamespace(env.Namespace)
	u.SetName("web")
	return u
}

// Without a schema, server-side apply merges maps, and replaces lists as a whole.
func TestForeignFieldsBesideOursWithoutASchema(t *testing.T) {
	const content = `{metadata: {labels: {a: b}}, spec: {securityContext: {runAsUser: 1000}, containers: [{name: a, image: b}]}}`
	const want = "{priority: 1, spec: {config: " + content + ", any: " + content + ", partly: {known: {name: a}, unknown: " + content + "}, " +
		"template: {apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}, spec: {securityContext: {runAsUser: 1000}, containers: [{name: a, image: b}]}}}}"
	tests := map[string]struct {
		reason string
		path   []string
		value  any
		op     apply.Operation
	}{
		"Map":           {reason: "A foreign field beside ours.", path: []string{"spec", "securityContext", "fsGroup"}, value: int64(1), op: apply.Unchanged},
		"MapAbove":      {reason: "A foreign field beside our map.", path: []string{"spec", "nodeName"}, value: "x", op: apply.Unchanged},
		"Label":         {reason: "A foreign key beside ours.", path: []string{"metadata", "labels", "c"}, value: "d", op: apply.Unchanged},
		"OurField":      {reason: "Our field was changed.", path: []string{"spec", "securityContext", "runAsUser"}, value: int64(1), op: apply.Applied},
		"ItemOfAList":   {reason: "A list is one value.", path: []string{"spec", "containers"}, value: []any{map[string]any{"name": "a", "image": "b"}, map[string]any{"name": "c"}}, op: apply.Applied},
		"FieldInAnItem": {reason: "So are its items.", path: []string{"spec", "containers"}, value: []any{map[string]any{"name": "a", "image": "b", "tty": true}}, op: apply.Applied},
	}
	for _, known := range []bool{true, false} {
		env := newSprocketServer(t, known)
		env.Expect(t, sprocket(t, env, want), apply.Created, "POST sprockets")
		env.Settled(t, sprocket(t, env, want))
		for _, parent := range [][]string{{"spec", "config"}, {"spec", "any"}, {"spec", "partly", "unknown"}, {"spec", "template"}} {
			for name, tc := range tests {
				t.Run(fmt.Sprint(strings.Join(parent, "."), "/", name, "/KnownSchema=", known), func(t *testing.T) {
					ownedtest.ByHand(t, env, sprocket(t, env, "{}"), func(u *unstructured.Unstructured) {
						require.NoError(t, unstructured.SetNestedField(u.Object, tc.value, slices.Concat(parent, tc.path)...))
					})
					require.Equal(t, tc.op, env.MustApply(t, sprocket(t, env, want)).Operation, tc.reason)
					env.Settled(t, sprocket(t, env, want))
				})
			}
		}
	}
}

func TestNulls(t *testing.T) {
	const nulls = `priority: null, spec: {size: null, subject: null, parts: null, config: {grpc: null, http: {endpoint: a}},
		plain: null, teeth: null, defaulted: null, labels: {a: null}, note: `
	stored := map[string]any{
		"size": nil, "subject": nil, "parts": nil, "config": map[string]any{"grpc": nil, "http": map[string]any{"endpoint": "a"}},
		"defaulted": int64(3), "labels": map[string]any{}, // the other fields are not nullable
	}
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("KnownSchema=", known), func(t *testing.T) {
			env := newSprocketServer(t, known)
			want := func(note string) client.Object { return sprocket(t, env, "{"+nulls+note+"}}") }
			refused := []string{"PATCH sprockets"}
			if known {
				refused = nil
			}
			requireStored := func(note string) {
				t.Helper()
				live := sprocket(t, env, "{}")
				env.Live(t, live)
				require.Contains(t, live.Object, "priority")
				require.Nil(t, live.Object["priority"])
				stored["note"] = note
				require.Empty(t, cmp.Diff(stored, live.Object["spec"]))
			}
			env.Expect(t, want("first"), apply.Created, "POST sprockets")
			env.Settled(t, want("first"))
			requireStored("first")
			env.Expect(t, want("second"), apply.Applied, slices.Concat([]string{"GET sprockets", "PATCH sprockets", "PATCH sprockets"}, refused)...)
			requireStored("second")
			env.Settled(t, want("second"))

			values := sprocket(t, env, "{priority: 1, spec: {size: 1, subject: {name: a}, parts: [a], config: {grpc: {a: b}, http: {endpoint: a}}, labels: {}, note: second}}")
			env.Expect(t, values, apply.Applied, "PATCH sprockets")
			env.Expect(t, want("second"), apply.Applied, slices.Concat(refused, []string{"PATCH sprockets"})...)
			requireStored("second")

			if !known { // without the schema, it is not known which nulls the API server stores
				return
			}
			ownedtest.ByHand(t, env, sprocket(t, env, "{}"), func(u *unstructured.Unstructured) {
				u.Object["priority"] = int64(5)
				unstructured.RemoveNestedField(u.Object, "spec", "config", "grpc")
				require.NoError(t, unstructured.SetNestedStringSlice(u.Object, []string{"theirs"}, "spec", "parts"))
			})
			env.Expect(t, want("second"), apply.Applied, "PATCH sprockets")
			requireStored("second")

			ownedtest.ByHand(t, env, sprocket(t, env, "{}"), func(u *unstructured.Unstructured) {
				require.NoError(t, unstructured.SetNestedStringMap(u.Object, map[string]string{"name": "theirs"}, "spec", "subject"))
			})
			env.Settled(t, want("second")) // server-side apply would not repair the difference
		})
	}
}
