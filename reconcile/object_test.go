package reconcile

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// TestDetach: a step calls a function, and after some time does not wait for it any more. Until then, the function may use
// the pass like the step. Afterwards it cannot reach the pass.
func TestDetach(t *testing.T) {
	var first, second *budget
	var ofFunction context.Context
	note := func(conditionType string) {
		passcontext.FromContext(ofFunction).SetCondition(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "R"})
	}
	h := newHarness(t, interceptor.Funcs{},
		Named("one", Func(func(ctx context.Context, _ client.Client, b *budget) error {
			first = b
			b.Status.CurrentHealthy = 1
			var end func()
			ofFunction, end = passcontext.FromContext(ctx).Detach(ctx)
			require.NoError(t, Checkpoint(ofFunction))
			note("Before")
			b.Status.DesiredHealthy = 2 // only the status write at the end has this change, and no checkpoint
			end()
			require.ErrorIs(t, Checkpoint(ofFunction), errDetached)
			known, err := passcontext.FromContext(ofFunction).ConfirmCurrent(ofFunction, b)
			require.True(t, known)
			require.ErrorIs(t, err, errDetached)
			note("After")
			Eventf(ofFunction, b, "Normal", "Late", "late")
			require.False(t, Requested(ofFunction))
			b.Status.ExpectedPods = 3
			return errors.New("it has not returned")
		})),
		Named("two", Func(func(_ context.Context, _ client.Client, b *budget) error { second = b; return nil })))
	h.pass(t)
	status := h.status(t)
	require.NotSame(t, first, second, "the pass goes on with a copy")
	require.Equal(t, int32(1), status.CurrentHealthy, "what the checkpoint has written stays")
	require.Zero(t, status.DesiredHealthy)
	require.Zero(t, status.ExpectedPods)
	var types []string
	for _, c := range status.Conditions {
		types = append(types, c.Type)
	}
	require.ElementsMatch(t, []string{"Ready", "Reconciling", "Before"}, types)
}
