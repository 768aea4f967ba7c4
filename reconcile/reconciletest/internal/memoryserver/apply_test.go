package memoryserver

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestApply(t *testing.T) {
	runScenarios(t, map[string]scenario{
		"FieldConflict": {
			reason: "applying another value is a conflict, which force resolves",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				require.NoError(t, applied(ctx, c, "one", testWidget(map[string]any{"replicas": int64(1)})))
				require.NoError(t, applied(ctx, c, "two", testWidget(map[string]any{"note": "n"})))
				err := applied(ctx, c, "two", testWidget(map[string]any{"replicas": int64(2)}))
				require.True(t, apierrors.IsConflict(err))
				require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
				require.NoError(t, applied(ctx, c, "two", testWidget(map[string]any{"replicas": int64(2)}), client.ForceOwnership))
			},
		},
		"RemovedFields": {
			reason: "fields that a manager no longer applies are removed; those of other managers stay",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				require.NoError(t, applied(ctx, c, "one", testWidget(map[string]any{"note": "n", "options": map[string]any{"x": "1"}})))
				require.NoError(t, applied(ctx, c, "two", testWidget(map[string]any{"options": map[string]any{"y": "2"}})))
				w := testWidget(map[string]any{})
				require.NoError(t, applied(ctx, c, "one", w))
				require.Equal(t, map[string]any{"replicas": int64(1), "color": "red", "options": map[string]any{"y": "2"}}, w.Object["spec"])
			},
		},
		"KeyedList": {
			reason: "items are merged by the keys of the custom resource definition, one of which has a default",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				require.NoError(t, applied(ctx, c, "one", testWidget(map[string]any{"parts": []any{map[string]any{"name": "p", "side": "front", "count": int64(1)}}})))
				w := testWidget(map[string]any{"parts": []any{map[string]any{"name": "p", "weights": []any{int64(7)}}, map[string]any{"name": "p", "side": "back"}}})
				require.NoError(t, applied(ctx, c, "two", w))
				parts, _, _ := unstructured.NestedSlice(w.Object, "spec", "parts")
				require.Equal(t, []any{
					map[string]any{"name": "p", "side": "front", "count": int64(1), "weights": []any{int64(7)}}, map[string]any{"name": "p", "side": "back"},
				}, parts)
			},
		},
		"NoChange": {
			reason: "only the time of the managed fields would change",
			run: func(t *testing.T, ctx context.Context, s *Server, c client.WithWatch) {
				require.NoError(t, applied(ctx, c, "one", testWidget(map[string]any{"replicas": int64(1)})))
				revision := s.Revision()
				require.NoError(t, applied(ctx, c, "one", testWidget(map[string]any{"replicas": int64(1)})))
				require.Equal(t, revision, s.Revision())
			},
		},
		"MissingFieldManager": {
			reason: "the real server checks it before anything else",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				require.ErrorContains(t, applied(ctx, c, "", testWidget(nil)), "is required for apply patch")
			},
		},
		"UnknownField": {
			reason: "the real server answers 500, although the fault is the client's",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				err := applied(ctx, c, "one", testWidget(map[string]any{"unknown": "x"}))
				require.ErrorContains(t, err, "failed to create typed patch object")
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status)
				require.EqualValues(t, http.StatusInternalServerError, status.Status().Code)
			},
		},
		"OtherUID": {
			reason: "an apply with a UID applies to no other object, whether the object exists or not",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				w := testWidget(map[string]any{})
				w.SetUID("another")
				require.True(t, apierrors.IsConflict(applied(ctx, c, "one", w.DeepCopy())))
				require.NoError(t, c.Create(ctx, testWidget(map[string]any{})))
				err := applied(ctx, c, "one", w)
				require.True(t, apierrors.IsInvalid(err))
				require.ErrorContains(t, err, "metadata.uid")
			},
		},
		"ApplyConfiguration": {
			reason: "generated apply configurations are applied by the client's own method, and receive the answer",
			run: func(t *testing.T, ctx context.Context, _ *Server, c client.WithWatch) {
				m := corev1ac.ConfigMap("a", "default").WithData(map[string]string{"k": "v"})
				require.NoError(t, c.Apply(ctx, m, client.FieldOwner("one")))
				require.NotEmpty(t, *m.UID)
				stored := &corev1.ConfigMap{}
				require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, stored))
				require.Equal(t, metav1.ManagedFieldsOperationApply, stored.ManagedFields[0].Operation)
			},
		},
	})
}
