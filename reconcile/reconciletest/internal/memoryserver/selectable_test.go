package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFieldSelectors(t *testing.T) {
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	scenarios := map[string]scenario{}
	for name, tc := range map[string]struct {
		reason string
		fields client.MatchingFields
		finds  int
	}{
		"Node":     {reason: "a drain lists the pods of a node", fields: client.MatchingFields{"spec.nodeName": "a"}, finds: 1},
		"NoNode":   {reason: "an absent field is empty", fields: client.MatchingFields{"spec.nodeName": ""}, finds: 1},
		"Boolean":  {reason: "an absent boolean is false", fields: client.MatchingFields{"spec.hostNetwork": "false"}, finds: 3},
		"WithName": {reason: "all must match", fields: client.MatchingFields{"metadata.name": "two", "spec.nodeName": "b", "status.phase": "Pending"}, finds: 1},
		"None":     {reason: "another node", fields: client.MatchingFields{"spec.nodeName": "c"}},
		"Unknown":  {reason: "the API server selects by a few fields only", fields: client.MatchingFields{"spec.priority": "1"}, finds: -1},
	} {
		scenarios[name] = scenario{reason: tc.reason, run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
			for _, made := range []*corev1.Pod{pod("one", "a"), pod("two", "b"), pod("three", "")} {
				require.NoError(t, c.Create(ctx, made))
			}
			list := &corev1.PodList{}
			err := c.List(ctx, list, tc.fields)
			if tc.finds < 0 {
				require.True(t, apierrors.IsBadRequest(err), "%v", err)
				require.EqualError(t, err, "field label not supported: spec.priority")
				return
			}
			require.NoError(t, err)
			require.Len(t, list.Items, tc.finds)
		}}
	}
	runScenarios(t, scenarios)
}

// A custom resource definition names the fields that field selectors may use.
func TestSelectableFieldsOfDefinition(t *testing.T) {
	c := newTestServer(t).Client()
	for name, color := range map[string]string{"a": "red", "b": "blue"} {
		widget := testWidget(map[string]any{"color": color})
		widget.SetName(name)
		require.NoError(t, c.Create(t.Context(), widget))
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("WidgetList")
	require.NoError(t, c.List(t.Context(), list, client.MatchingFields{"spec.color": "blue"}))
	require.Len(t, list.Items, 1)
	require.Equal(t, "b", list.Items[0].GetName())
	require.EqualError(t, c.List(t.Context(), list, client.MatchingFields{"spec.class": "small"}), "field label not supported: spec.class")
}
