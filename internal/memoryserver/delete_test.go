package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletion(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"finalizers hold an object": {
			reason: "the deletion counts in the generation, and the last finalizer ends it",
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
		"a deletion can name what it means": {
			reason: "an object that was made anew or changed is not deleted",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				require.NoError(t, c.Create(ctx, m))
				require.True(t, apierrors.IsConflict(c.Delete(ctx, m, client.Preconditions{UID: ptr.To(types.UID("another"))})))
				require.True(t, apierrors.IsConflict(c.Delete(ctx, m, client.Preconditions{ResourceVersion: new("1")})))
				require.NoError(t, c.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}))
				require.True(t, apierrors.IsNotFound(c.Delete(ctx, m)))
			},
		},
		"a pod on a node takes its time": {
			reason: "the kubelet ends it, by deleting it without grace; a pod on no node goes at once",
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

func TestCollectGarbage(t *testing.T) {
	// owned gives an owner with a dependent that has a dependent itself.
	owned := func(t *testing.T, ctx context.Context, c client.Client, blocks bool) (owner, child, grandchild *corev1.ConfigMap) {
		t.Helper()
		owner, child, grandchild = testConfigMap("owner"), testConfigMap("child"), testConfigMap("grandchild")
		require.NoError(t, c.Create(ctx, owner))
		for _, pair := range [][2]*corev1.ConfigMap{{owner, child}, {child, grandchild}} {
			pair[1].OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: pair[0].Name, UID: pair[0].UID, BlockOwnerDeletion: &blocks}}
			require.NoError(t, c.Create(ctx, pair[1]))
		}
		return owner, child, grandchild
	}
	exists := func(t *testing.T, ctx context.Context, c client.Client, want bool, objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
			require.Equal(t, want, err == nil, "%s: %v", object.GetName(), err)
		}
	}
	runScenarios(t, map[string]scenario{
		"in the background": {
			reason: "dependents go after their owner, theirs after them",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, grandchild := owned(t, ctx, c, false)
				require.False(t, s.CollectGarbage())
				require.NoError(t, c.Delete(ctx, owner))
				exists(t, ctx, c, true, child, grandchild)
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, child, grandchild)
				require.False(t, s.CollectGarbage(), "there is an end")
			},
		},
		"in the foreground": {
			reason: "the owner stays until the dependents that block it are gone",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, _ := owned(t, ctx, c, true)
				child.Finalizers = []string{"example.com/one"}
				require.NoError(t, c.Update(ctx, child))
				require.NoError(t, c.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, true, owner, child)
				require.NotNil(t, child.DeletionTimestamp)
				child.Finalizers = nil
				require.NoError(t, c.Update(ctx, child))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, owner, child)
			},
		},
		"orphaned": {
			reason: "dependents lose the reference and stay",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, _ := owned(t, ctx, c, false)
				require.NoError(t, c.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, owner)
				exists(t, ctx, c, true, child)
				require.Empty(t, child.OwnerReferences)
			},
		},
		"one owner of two": {
			reason: "an object with another owner stays, without the reference to the one that went",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, grandchild := owned(t, ctx, c, false)
				grandchild.OwnerReferences = append(grandchild.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID})
				require.NoError(t, c.Update(ctx, grandchild))
				require.NoError(t, c.Delete(ctx, child))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, true, grandchild)
				require.Len(t, grandchild.OwnerReferences, 1)
			},
		},
		"an owner of the same name": {
			reason: "the UID decides: it is another object",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, _ := owned(t, ctx, c, false)
				require.NoError(t, c.Delete(ctx, owner))
				require.NoError(t, c.Create(ctx, testConfigMap("owner")))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, child)
			},
		},
		"an owner of an unknown kind": {
			reason: "the collector does not touch what it does not understand",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				d := testDeployment()
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "other.example.com/v1", Kind: "Other", Name: "o", UID: "1"}}
				require.NoError(t, c.Create(ctx, d))
				require.False(t, s.CollectGarbage())
				exists(t, ctx, c, true, &appsv1.Deployment{ObjectMeta: d.ObjectMeta})
			},
		},
	})
}
