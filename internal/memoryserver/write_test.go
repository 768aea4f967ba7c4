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

// scenario is one thing that operators rely on.
type scenario struct {
	reason string
	run    func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch)
}

func runScenarios(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, tc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			s := newTestServer(t)
			tc.run(t, t.Context(), s, s.Client())
		})
	}
}

func TestWrites(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"a creation sets what the server owns": {
			reason: "generation, UID, creation time and managers come with the answer",
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
		"an update that changes nothing is no write": {
			reason: "operators that write in a loop are found by the versions that they make",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d))
				version, revision := d.ResourceVersion, s.Revision()
				require.NoError(t, c.Update(ctx, d))
				require.Equal(t, version, d.ResourceVersion)
				require.Equal(t, revision, s.Revision())
			},
		},
		"the generation counts changes of the spec": {
			reason: "observedGeneration and the predicate on generations rest on it",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d))
				d.Labels = map[string]string{"l": "1"}
				require.NoError(t, c.Update(ctx, d))
				require.EqualValues(t, 1, d.Generation, "labels are not wanted state")
				d.Spec.Replicas = new(int32(5))
				d.Status.Replicas = 5
				require.NoError(t, c.Update(ctx, d))
				require.EqualValues(t, 2, d.Generation)
				require.Zero(t, d.Status.Replicas, "only the status subresource writes the status")
				d.Status.Replicas = 5
				d.Spec.Replicas = new(int32(9))
				require.NoError(t, c.Status().Update(ctx, d))
				require.EqualValues(t, 2, d.Generation)
				require.EqualValues(t, 5, d.Status.Replicas)
				require.EqualValues(t, 5, *d.Spec.Replicas, "and it writes nothing else")
			},
		},
		"an update of what has changed is refused": {
			reason: "optimistic locking",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				first := testConfigMap("a")
				require.NoError(t, c.Create(ctx, first))
				second := first.DeepCopy()
				first.Data["k"] = "1"
				require.NoError(t, c.Update(ctx, first))
				second.Data["k"] = "2"
				require.True(t, apierrors.IsConflict(c.Update(ctx, second)))
				second.ResourceVersion = ""
				require.NoError(t, c.Update(ctx, second), "built-in kinds allow not to lock")
				second.UID = "another"
				require.True(t, apierrors.IsConflict(c.Update(ctx, second)), "the object was made anew")
			},
		},
		"a custom resource cannot be updated without its version": {
			reason: "the real server requires it for custom resources",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{})
				require.NoError(t, c.Create(ctx, w))
				w.SetResourceVersion("")
				err := c.Update(ctx, w)
				require.True(t, apierrors.IsInvalid(err))
				require.ErrorContains(t, err, "must be specified for an update")
			},
		},
		"a dry run stores nothing": {
			reason: "and answers what would be",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				revision := s.Revision()
				d := testDeployment()
				require.NoError(t, c.Create(ctx, d, client.DryRunAll))
				require.NotNil(t, d.Spec.ProgressDeadlineSeconds, "defaults show")
				require.Equal(t, revision, s.Revision())
			},
		},
		"a generated name is new": {
			reason: "and the same in each run",
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
		"a namespace has to exist": {
			reason: "operators that create in a namespace that is gone get 404, in one that is going 403",
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
		"unknown fields are an error when they should be": {
			reason: "strict validation finds typing mistakes in built-in kinds and custom resources",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{"replica": int64(1)})
				err := c.Create(ctx, w.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))
				require.True(t, apierrors.IsBadRequest(err))
				require.ErrorContains(t, err, `unknown field "spec.replica"`)
				require.NoError(t, c.Create(ctx, w))
				require.NotContains(t, w.Object["spec"], "replica")
			},
		},
		"two controllers are one too many": {
			reason: "the real server refuses the second, controller-runtime's fake client does not",
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
