package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDelete(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"Finalizers": {
			reason: "the deletion increases the generation, and removing the last finalizer ends the object",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{})
				w.SetFinalizers([]string{"example.com/one"})
				require.NoError(t, c.Create(ctx, w))
				require.NoError(t, c.Delete(ctx, w))
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(w), w))
				require.NotNil(t, w.GetDeletionTimestamp())
				require.EqualValues(t, 2, w.GetGeneration())
				again := testWidget(map[string]any{})
				require.ErrorContains(t, c.Create(ctx, again), "object is being deleted")
				w.SetFinalizers([]string{"example.com/one", "example.com/two"})
				require.ErrorContains(t, c.Update(ctx, w.DeepCopy()), "no new finalizers can be added")
				w.SetFinalizers(nil)
				require.NoError(t, c.Update(ctx, w))
				require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(w), w)))
			},
		},
		"Preconditions": {
			reason: "an object that was recreated or changed is not deleted",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				require.True(t, apierrors.IsConflict(c.Delete(ctx, m, client.Preconditions{UID: ptr.To(types.UID("another"))})))
				require.True(t, apierrors.IsConflict(c.Delete(ctx, m, client.Preconditions{ResourceVersion: new("1")})))
				require.NoError(t, c.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}))
				require.True(t, apierrors.IsNotFound(c.Delete(ctx, m)))
			},
		},
		"GracePeriod": {
			reason: "the kubelet ends it by a deletion without grace; a pod without a node is deleted at once",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: testDeployment().Spec.Template.Spec}
				pod.Spec.NodeName = "n"
				require.NoError(t, c.Create(ctx, pod))
				require.NoError(t, c.SubResource(evictionSubresource).Create(ctx, pod, &policyv1.Eviction{}))
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
				require.EqualValues(t, 30, *pod.DeletionGracePeriodSeconds)
				require.NoError(t, c.Delete(ctx, pod, client.GracePeriodSeconds(0)))
				require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod)))
				pod.ResourceVersion, pod.Spec.NodeName = "", ""
				require.NoError(t, c.Create(ctx, pod))
				require.NoError(t, c.Delete(ctx, pod))
				require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod)))
			},
		},
	})
}
