package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCollectGarbage(t *testing.T) {
	// owned returns an owner with a dependent that has a dependent itself.
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
		"Background": {
			reason: "dependents are deleted after their owner, and their own dependents after them",
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
		"Foreground": {
			reason: "the owner stays until the dependents that block it are deleted",
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
		"Orphan": {
			reason: "dependents lose the owner reference and stay",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, _ := owned(t, ctx, c, false)
				require.NoError(t, c.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, owner)
				exists(t, ctx, c, true, child)
				require.Empty(t, child.OwnerReferences)
			},
		},
		"OneOwnerOfTwo": {
			reason: "an object with another owner stays, without the reference to the deleted one",
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
		"OwnerRecreated": {
			reason: "the UID decides: it is another object",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				owner, child, _ := owned(t, ctx, c, false)
				require.NoError(t, c.Delete(ctx, owner))
				require.NoError(t, c.Create(ctx, testConfigMap("owner")))
				require.True(t, s.CollectGarbage())
				exists(t, ctx, c, false, child)
			},
		},
		"UnknownOwnerKind": {
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
