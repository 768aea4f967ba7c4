package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// Another version of the operator overwrites our status with its own again and again.
func TestStatusOfTwoVersions(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil)))
	recorder := events.NewFakeRecorder(10)
	registry := prometheus.NewRegistry()
	var err error
	h.metrics, err = newMetrics(registry, "PodDisruptionBudget")
	require.NoError(t, err)
	loops := func() (count int) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "opblocks_write_loop" {
				count = len(family.GetMetric())
			}
		}
		return count
	}
	changeBack := func() {
		var b budget
		require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: "OtherVersion", ObservedGeneration: b.Generation,
		})
		require.NoError(t, h.client.Status().Update(t.Context(), &b))
		h.clock.SetTime(h.clock.Now().Add(time.Second)) // so that each transition has another time
	}
	h.pass(t)
	h.recorder = recorder
	for i := range writeloop.Free {
		changeBack()
		require.Zero(t, h.pass(t).RequeueAfter)
		require.Equal(t, 2+i, h.writes, "it is written at once")
	}
	changeBack()
	require.Zero(t, h.pass(t))
	for len(recorder.Events) > 0 {
		<-recorder.Events
	}
	changeBack()
	require.Equal(t, writeloop.MinDelay-time.Second, h.pass(t).RequeueAfter)
	require.Equal(t, 2+writeloop.Free, h.writes)
	require.Equal(t, "Warning WriteLoop the status is changed back again and again by another writer, so it is written less often: status.conditions", <-recorder.Events)
	require.Equal(t, 1, loops())
	h.pass(t)
	require.Empty(t, recorder.Events, "one event per loop")
	h.clock.SetTime(h.clock.Now().Add(writeloop.MinDelay))
	require.Zero(t, h.pass(t))
	require.True(t, meta.IsStatusConditionTrue(h.status(t).Conditions, "Ready"), "it is still written")
	changeBack()
	require.Equal(t, 2*writeloop.MinDelay-time.Second, h.pass(t).RequeueAfter, "the next one comes later")

	h.delete(t)
	h.pass(t)
	require.Zero(t, loops(), "the metric goes with the object")
	require.Empty(t, h.memory.objects)
}

// If a status changes often, or its writes return conflicts, it is still written at once.
func TestBusyStatusIsNotSlowedDown(t *testing.T) {
	n := 0
	conflicts := true
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if conflicts {
			return apierrors.NewConflict(resource, "a", nil)
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, Named("one", stepFunc[*budget](func(context.Context, client.Client, *budget) error {
		return Wait("Busy", 0, "%d", n%3)
	})))
	for range 3 * writeloop.Free {
		h.pass(t)
	}
	require.Equal(t, 3*writeloop.Free, h.writes)
	conflicts, h.writes = false, 0
	for range 3 * writeloop.Free {
		n++
		h.pass(t)
	}
	require.Equal(t, 3*writeloop.Free, h.writes)
}
