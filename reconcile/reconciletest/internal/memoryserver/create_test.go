package memoryserver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCreate(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"ServerOwnedFields": {
			reason: "the answer has the generation, the UID, the creation time and the managed fields",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d, client.FieldOwner("me")))
				require.EqualValues(t, 1, d.Generation)
				require.NotEmpty(t, d.UID)
				require.False(t, d.CreationTimestamp.IsZero())
				require.Equal(t, "me", d.ManagedFields[0].Manager)
				require.Empty(t, d.Kind, "a typed client leaves it empty")
			},
		},
		"DryRun": {
			reason: "nothing is stored, and the answer is the object as it would be stored",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				revision := s.Revision()
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d, client.DryRunAll))
				require.NotNil(t, d.Spec.ProgressDeadlineSeconds, "defaults show")
				require.Equal(t, revision, s.Revision())
			},
		},
		"GenerateName": {
			reason: "generated names are unique",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				names := map[string]bool{}
				for range 100 {
					m := testConfigMap("")
					m.GenerateName = "a-"
					require.NoError(t, c.Create(ctx, m))
					require.Len(t, m.Name, len("a-")+5)
					names[m.Name] = true
				}
				require.Len(t, names, 100)
			},
		},
		"Namespace": {
			reason: "a creation in a namespace that does not exist is answered by 404, in one that is being deleted by 403",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				m := testConfigMap("a")
				m.Namespace = "other"
				require.True(t, apierrors.IsNotFound(c.Create(ctx, m)))
				space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
				require.NoError(t, c.Create(ctx, space))
				require.NoError(t, c.Create(ctx, m))
				require.NoError(t, c.Delete(ctx, space))
				second := testConfigMap("b")
				second.Namespace = "other"
				err := c.Create(ctx, second)
				require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
				require.True(t, s.CollectGarbage())
				require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(m), m)))
				require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(space), space)))
			},
		},
		"StrictValidation": {
			reason: "strict validation finds misspelt fields; without it they are dropped",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{"replica": int64(1)})
				err := c.Create(ctx, w.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))
				require.True(t, apierrors.IsBadRequest(err))
				require.ErrorContains(t, err, `unknown field "spec.replica"`)
				require.NoError(t, c.Create(ctx, w))
				require.NotContains(t, w.Object["spec"], "replica")
			},
		},
		"TwoControllers": {
			reason: "the real server rejects the second; controller-runtime's fake client does not",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := testConfigMap("a")
				m.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1", Controller: new(true)},
					{APIVersion: "v1", Kind: "ConfigMap", Name: "y", UID: "2", Controller: new(true)},
				}
				require.ErrorContains(t, c.Create(ctx, m), "Only one reference can have Controller set to true")
			},
		},
	})
}
