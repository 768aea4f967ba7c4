package ownedresources

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/owned"
)

// A custom resource of another operator whose schema declares status.observedGeneration is not ready before its controller has set that
// field. By the rules of kstatus alone it would be ready at once. A custom resource without such a field is ready at once.
func TestReadinessOfCustomResources(t *testing.T) {
	env := newClusterEnv(t)
	kinds := env.Published(t, &Shop{})
	ready := func(t *testing.T, obj *unstructured.Unstructured) error {
		t.Helper()
		k, err := kinds.Of(obj, env.Client.Scheme())
		require.NoError(t, err)
		return k.Ready(obj, "")
	}
	of := func(version, kind string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": map[string]any{}}}
		obj.SetNamespace(env.Namespace)
		obj.SetName("other")
		return obj
	}
	t.Run("declared", func(t *testing.T) {
		shop := of("example.com/v1", "Shop")
		env.Create(t, shop)
		err := ready(t, shop)
		require.ErrorAs(t, err, new(*owned.WaitingError))
		require.ErrorContains(t, err, "its controller has not reported a status.observedGeneration yet")
		require.NoError(t, unstructured.SetNestedField(shop.Object, shop.GetGeneration(), "status", "observedGeneration"))
		require.NoError(t, env.Other.Status().Update(t.Context(), shop))
		require.NoError(t, ready(t, shop))
	})
	t.Run("declared as a number or a text", func(t *testing.T) { // Istio declares it so, and its controller does not set it by default
		k, err := kinds.Of(of("test.opblocks.dev/v1", "Gizmo"), env.Client.Scheme())
		require.NoError(t, err)
		gizmo := of("test.opblocks.dev/v1", "Gizmo")
		env.Create(t, gizmo)
		require.NoError(t, k.Ready(gizmo, ""))
		require.NoError(t, unstructured.SetNestedField(gizmo.Object, strconv.FormatInt(gizmo.GetGeneration(), 10), "status", "observedGeneration"))
		require.NoError(t, env.Other.Status().Update(t.Context(), gizmo))
		require.NoError(t, k.Ready(gizmo, ""), "the text is the generation")
	})
	t.Run("not declared", func(t *testing.T) {
		gadget := of("test.opblocks.dev/v1", "Gadget")
		env.Create(t, gadget)
		require.NoError(t, ready(t, gadget), "nobody says that a controller reports anything")
	})
}
