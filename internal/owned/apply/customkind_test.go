package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

// newGadgetServer returns an environment whose clients and applier know the kind Gadget.
func newGadgetServer(t *testing.T) *ownedtest.Server {
	t.Helper()
	w := newRealServer(t)
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	testkinds.AddShop(types)
	types.AddKnownTypeWithName(testkinds.GadgetKind, &testkinds.Gadget{})
	metav1.AddToGroupVersion(types, testkinds.GadgetKind.GroupVersion())
	var err error
	w.Client, err = client.New(w.Requests.Wrap(w.Plane.Config()), client.Options{Scheme: types})
	require.NoError(t, err)
	w.Applier.Kinds = w.Published(t, &testkinds.Gadget{})
	return w
}

func gadget(env *ownedtest.Server, note string) *testkinds.Gadget {
	return &testkinds.Gadget{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"},
		Spec: testkinds.GadgetSpec{
			Note:  note,
			Parts: []testkinds.GadgetPart{{Name: "b"}, {Name: "a"}},
			Tags:  []string{"y", "x"},
			Steps: []testkinds.GadgetStep{{Run: "one"}},
			Raw:   &runtime.RawExtension{Raw: []byte(`{"deep": {"list": [1, {"k": 1.0}]}, "nothing": null}`)},
		},
	}
}

func untypedGadget(t *testing.T, env *ownedtest.Server, note string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(gadget(env, note))
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(testkinds.GadgetKind)
	return u
}

func liveGadget(t *testing.T, env *ownedtest.Server) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(testkinds.GadgetKind)
	require.NoError(t, env.Other.Get(t.Context(), types.NamespacedName{Namespace: env.Namespace, Name: "web"}, u))
	return u
}

func TestKindOfACustomResource(t *testing.T) {
	for _, input := range []string{"Typed", "Unstructured"} {
		t.Run(input, func(t *testing.T) {
			w := newGadgetServer(t)
			want := func(note string) client.Object {
				if input == "Typed" {
					return gadget(w, note)
				}
				return untypedGadget(t, w, note)
			}
			w.Expect(t, want("first"), apply.Created, "POST gadgets")
			w.Settled(t, want("first"))
			w.Expect(t, want("second"), apply.Applied, "GET gadgets", "PATCH gadgets", "PATCH gadgets")
			w.Settled(t, want("second"))

			spec := liveGadget(t, w).Object["spec"].(map[string]any)
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
				live := liveGadget(t, w)
				tc.change(live.Object["spec"].(map[string]any))
				require.NoError(t, w.Other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")), tc.reason)
				require.Equal(t, tc.op, w.MustApply(t, want("second")).Operation, tc.reason)
				w.Settled(t, want("second"))
			}

			w.Expect(t, want(""), apply.Applied, "PATCH gadgets")
			if input == "Typed" {
				require.NotContains(t, liveGadget(t, w).Object["spec"], "note", "a field that is no longer desired is removed")
			}
		})
	}
}

// TestApplyEmptiesAStruct drops the last field of a struct, and the desired object still has the empty struct. A server-side apply alone
// would leave null there, which the schema of the custom resource forbids.
func TestApplyEmptiesAStruct(t *testing.T) {
	env := newServer(t)
	gadget := func(size int64, subject map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"size": size}
		if subject != nil {
			spec["subject"] = subject
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(testkinds.GadgetKind)
		u.SetName("web")
		return u
	}
	named := map[string]any{"organization": "shop", "units": []any{"a"}}
	for _, start := range []int64{1, 2} {
		env.MustApply(t, gadget(start, named))
	}
	live := gadget(0, nil)
	env.Live(t, live)
	live.SetLabels(map[string]string{"team": "red"})
	require.NoError(t, env.Other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))

	for _, subject := range []map[string]any{{}, named, {}} {
		env.MustApply(t, gadget(3, subject))
		env.Live(t, live)
		found, _, err := unstructured.NestedMap(live.Object, "spec", "subject")
		require.NoError(t, err)
		require.Equal(t, subject, found)
		require.Equal(t, "red", live.GetLabels()["team"])
		env.Settled(t, gadget(3, subject))
	}
	env.MustApply(t, gadget(4, nil))
	env.Live(t, live)
	_, there, _ := unstructured.NestedMap(live.Object, "spec", "subject")
	require.False(t, there, "it can be dropped altogether")
}
