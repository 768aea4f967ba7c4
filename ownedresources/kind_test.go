package ownedresources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

func newGadgetEnv(t *testing.T) *serverEnv {
	t.Helper()
	cp := controlPlane(t)
	require.NoError(t, cp.InstallCRDs(t.Context(), "../internal/owned/testkinds/gadgets.yaml"))
	w := newServerEnv(t)
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	addShop(types)
	types.AddKnownTypeWithName(testkinds.GadgetKind, &testkinds.Gadget{})
	metav1.AddToGroupVersion(types, testkinds.GadgetKind.GroupVersion())
	var err error
	w.client, err = client.New(w.sent.Wrap(cp.Config()), client.Options{Scheme: types})
	require.NoError(t, err)
	server, err := discovery.NewDiscoveryClientForConfig(cp.Config())
	require.NoError(t, err)
	w.applier.Kinds = &owned.Kinds{Schemas: applyschema.FromServer(server.OpenAPIV3())}
	require.Eventually(t, func() bool { // the API server publishes schemas a moment after it serves the kind
		_, err := w.applier.Kinds.Of(&testkinds.Gadget{}, types)
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	return w
}

func (env *serverEnv) gadget(note string) *testkinds.Gadget {
	return &testkinds.Gadget{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "web"},
		Spec: testkinds.GadgetSpec{
			Note:  note,
			Parts: []testkinds.GadgetPart{{Name: "b"}, {Name: "a"}},
			Tags:  []string{"y", "x"},
			Steps: []testkinds.GadgetStep{{Run: "one"}},
			Raw:   &runtime.RawExtension{Raw: []byte(`{"deep": {"list": [1, {"k": 1.0}]}, "nothing": null}`)},
		},
	}
}

func (env *serverEnv) untypedGadget(t *testing.T, note string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(env.gadget(note))
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(testkinds.GadgetKind)
	return u
}

func (env *serverEnv) liveGadget(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(testkinds.GadgetKind)
	require.NoError(t, env.other.Get(t.Context(), types.NamespacedName{Namespace: env.namespace, Name: "web"}, u))
	return u
}

// newSprocketEnv returns an environment with the kind of testdata/sprockets.yaml, whose schema is known as to [Ensure], or
// not known as to [Apply].
func newSprocketEnv(t *testing.T, knownSchema bool) *serverEnv {
	t.Helper()
	cp := controlPlane(t)
	require.NoError(t, cp.InstallCRDs(t.Context(), "testdata/sprockets.yaml"))
	env := newServerEnv(t)
	server, err := discovery.NewDiscoveryClientForConfig(cp.Config())
	require.NoError(t, err)
	published := &owned.Kinds{Schemas: applyschema.FromServer(server.OpenAPIV3())}
	require.Eventually(t, func() bool { // the API server publishes schemas a moment after it serves the kind
		_, err := published.Of(env.sprocket(t, "{}"), env.client.Scheme())
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	if knownSchema {
		env.applier.Kinds = published
	}
	return env
}

func (env *serverEnv) sprocket(t *testing.T, content string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(content), &u.Object))
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.opblocks.dev", Version: "v1", Kind: "Sprocket"})
	u.SetNamespace(env.namespace)
	u.SetName("web")
	return u
}

// Server-side apply merges maps without a schema, and takes lists without a schema for one value.
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
		env := newSprocketEnv(t, known)
		env.expect(t, env.sprocket(t, want), apply.Created, "POST sprockets")
		env.expect(t, env.sprocket(t, want), apply.Unchanged, none...)
		for _, parent := range [][]string{{"spec", "config"}, {"spec", "any"}, {"spec", "partly", "unknown"}, {"spec", "template"}} {
			for name, tc := range tests {
				t.Run(fmt.Sprint(strings.Join(parent, "."), "/", name, "/KnownSchema=", known), func(t *testing.T) {
					byHand(t, env, env.sprocket(t, "{}"), func(u *unstructured.Unstructured) {
						require.NoError(t, unstructured.SetNestedField(u.Object, tc.value, slices.Concat(parent, tc.path)...))
					})
					result, err := env.apply(t, env.sprocket(t, want))
					require.NoError(t, err)
					require.Equal(t, tc.op, result.Operation, tc.reason)
					env.expect(t, env.sprocket(t, want), apply.Unchanged, none...)
				})
			}
		}
	}
}

func TestKindOfACustomResource(t *testing.T) {
	for _, input := range []string{"Typed", "Unstructured"} {
		t.Run(input, func(t *testing.T) {
			w := newGadgetEnv(t)
			want := func(note string) client.Object {
				if input == "Typed" {
					return w.gadget(note)
				}
				return w.untypedGadget(t, note)
			}
			w.expect(t, want("first"), apply.Created, "POST gadgets")
			w.expect(t, want("first"), apply.Unchanged, none...)
			w.expect(t, want("second"), apply.Applied, "GET gadgets", "PATCH gadgets", "PATCH gadgets")
			w.expect(t, want("second"), apply.Unchanged, none...)

			spec := w.liveGadget(t).Object["spec"].(map[string]any)
			require.EqualValues(t, 0, spec["size"], "a zero that is meant")
			require.Equal(t, false, spec["enabled"])
			require.EqualValues(t, 5, spec["steps"].([]any)[0].(map[string]any)["retries"], "a default in an atomic list")
			require.Contains(t, spec["raw"], "nothing", "the null of raw JSON stays when another field changes")

			tests := []struct {
				reason string
				change func(spec map[string]any)
				op     apply.Operation
			}{
				{"a foreign item of a keyed list", func(spec map[string]any) {
					spec["parts"] = append([]any{map[string]any{"name": "theirs"}}, spec["parts"].([]any)...)
				}, apply.Unchanged},
				{"a foreign value of a set", func(spec map[string]any) { spec["tags"] = append(spec["tags"].([]any), "z") }, apply.Unchanged},
				{"a foreign key of raw JSON", func(spec map[string]any) { spec["raw"].(map[string]any)["more"] = "x" }, apply.Unchanged},
				{"our item gone", func(spec map[string]any) { spec["parts"] = spec["parts"].([]any)[:1] }, apply.Applied},
				{"our value of a set gone", func(spec map[string]any) { spec["tags"] = []any{"x"} }, apply.Applied},
				{"an item of an atomic list more", func(spec map[string]any) {
					spec["steps"] = append(spec["steps"].([]any), map[string]any{"run": "theirs"})
				}, apply.Applied},
				{"our zero overwritten", func(spec map[string]any) { spec["size"] = int64(8) }, apply.Applied},
				{"our raw JSON changed", func(spec map[string]any) { spec["raw"].(map[string]any)["deep"] = "x" }, apply.Applied},
			}
			for _, tc := range tests {
				live := w.liveGadget(t)
				tc.change(live.Object["spec"].(map[string]any))
				require.NoError(t, w.other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")), tc.reason)
				result, err := w.apply(t, want("second"))
				require.NoError(t, err, tc.reason)
				require.Equal(t, tc.op, result.Operation, tc.reason)
				w.expect(t, want("second"), apply.Unchanged, none...)
			}

			w.expect(t, want(""), apply.Applied, "PATCH gadgets")
			if input == "Typed" {
				require.NotContains(t, w.liveGadget(t).Object["spec"], "note", "a field that is no longer desired is removed")
			}
		})
	}
}

// Only nulls are dropped from unstructured objects of kinds in client-go.
func TestKindOfAnUnstructuredBuiltInObject(t *testing.T) {
	w := newServerEnv(t)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.deployment())
	require.NoError(t, err)
	want := &unstructured.Unstructured{Object: content}
	want.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	require.NoError(t, unstructured.SetNestedField(want.Object, false, "spec", "template", "spec", "hostNetwork"))
	container := want.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"limits": map[string]any{"memory": "65536Ki", "cpu": "0.1"}}
	w.expect(t, want, apply.Created, "POST deployments")
	w.expect(t, want, apply.Unchanged, none...)
	container["image"] = "nginx:1.28"
	w.expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	w.expect(t, want, apply.Unchanged, none...)
}
