package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestClient(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"ObjectForms": {
			reason: "typed, unstructured and metadata only, alone and in lists",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				m.Labels = map[string]string{"l": "1"}
				require.NoError(t, c.Create(ctx, m))
				require.NoError(t, c.Create(ctx, testConfigMap("b")))
				untyped := newObject("ConfigMap")
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), untyped))
				require.Equal(t, map[string]any{"k": "v"}, untyped.Object["data"])
				partial := &metav1.PartialObjectMetadata{}
				partial.SetGroupVersionKind(untyped.GroupVersionKind())
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), partial))
				require.Equal(t, m.UID, partial.UID)
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
				require.NoError(t, c.List(ctx, list, client.MatchingLabels{"l": "1"}))
				require.Len(t, list.Items, 1)
				partials := &metav1.PartialObjectMetadataList{}
				partials.SetGroupVersionKind(list.GroupVersionKind())
				require.NoError(t, c.List(ctx, partials, client.InNamespace("default"), &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "b")}))
				require.Len(t, partials.Items, 1)
			},
		},
		"Copies": {
			reason: "the caller may change what it read: the store has its own copy",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				m.Data["k"] = "mine"
				stored := &corev1.ConfigMap{}
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(m), stored))
				require.Equal(t, "v", stored.Data["k"])
			},
		},
		"CanceledContext": {
			reason: "the process of the request has ended",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				revision := s.Revision()
				require.ErrorIs(t, c.Create(ctx, testConfigMap("a")), context.Canceled)
				require.ErrorIs(t, c.List(ctx, &corev1.ConfigMapList{}), context.Canceled)
				require.Equal(t, revision, s.Revision())
			},
		},
	})
}
