package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Go's own numbers and lists in an unstructured object are what most people write.
func TestUnstructuredOfGoValues(t *testing.T) {
	w := newWorld(t)
	want := func() client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "labels": map[string]string{"app": "web"}},
			"spec": map[string]any{
				"selector": map[string]string{"app": "web"},
				"ports":    []map[string]any{{"name": "http", "port": 80, "targetPort": int32(8080)}},
			},
		}}
	}
	for _, op := range []Operation{Created, Unchanged} {
		results, err := Apply(t.Context(), w.client, w.owner, want())
		require.NoError(t, err)
		require.Equal(t, op, results[0].Operation)
	}
	var live corev1.Service
	w.live(t, &live)
	require.Equal(t, int32(8080), live.Spec.Ports[0].TargetPort.IntVal)

	bad := want().(*unstructured.Unstructured)
	bad.Object["spec"] = func() {}
	_, err := Apply(t.Context(), w.client, w.owner, bad)
	require.ErrorContains(t, err, "no JSON form")
}
