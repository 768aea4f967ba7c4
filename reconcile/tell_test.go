package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestTell(t *testing.T) {
	recorder := &told{}
	h := newHarness(t, interceptor.Funcs{}, Named("water-plants", Func(func(ctx context.Context, _ client.Client, b *budget) error {
		Eventf(ctx, b, corev1.EventTypeNormal, "Watered", "%d litres", 3)
		Eventf(ctx, &appsv1.Deployment{}, corev1.EventTypeWarning, "Wet", "from above")
		return nil
	})))
	h.pass(t) // without a manager nobody listens
	h.Reconciler.WithRecorder(recorder)
	h.pass(t)
	require.Equal(t, []sent{
		{"Normal", "Watered", "WaterPlants", "3 litres"}, {"Warning", "Wet", "WaterPlants", "from above"},
	}, recorder.take())
	Eventf(t.Context(), &appsv1.Deployment{}, corev1.EventTypeNormal, "Nowhere", "outside of a pass nothing is told")
}
