package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/writeloop"
)

func TestSlowDown(t *testing.T) {
	w := newInMemory(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w.Applier.Clock = clock
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")
	fight := func() (apply.Result, error) {
		ownedtest.ByHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(31337)) })
		return w.Apply(t, w.Deployment())
	}
	for range writeloop.Free + 1 {
		result, err := fight()
		require.NoError(t, err)
		require.Equal(t, apply.Applied, result.Operation, "drift is repaired at once")
	}
	recorder := events.NewFakeRecorder(10)
	w.Applier.Recorder = recorder
	_, err := fight()
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "WriteLoop", reason)
	require.Equal(t, writeloop.MinDelay, after)
	require.ErrorContains(t, err, "spec.replicas", "the field is named")
	require.NotContains(t, err.Error(), "31337", "its value is not: it may be secret")
	_, err = w.Apply(t, w.Deployment())
	require.ErrorAs(t, err, &wait)
	require.Len(t, recorder.Events, 1, "one event per loop")
	require.Contains(t, <-recorder.Events, "Warning WriteLoop Deployment "+w.Namespace+"/web is changed back again and again")
	w.Applier.Recorder = nil
	require.Len(t, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_write_loop"), 1)

	clock.SetTime(clock.Now().Add(writeloop.MinDelay))
	require.Equal(t, apply.Applied, w.MustApply(t, w.Deployment()).Operation, "it is still repaired")
	_, err = fight()
	require.ErrorAs(t, err, &wait)
	_, after = wait.Waiting()
	require.Equal(t, 2*writeloop.MinDelay, after, "the next one comes later")

	ownedtest.ByHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(2))
		d.Spec.Template.Spec.Containers[0].Image = "other"
	})
	require.Equal(t, apply.Applied, w.MustApply(t, w.Deployment()).Operation, "other drift is no loop")

	want := w.Deployment()
	want.Spec.Replicas = new(int32(3))
	require.Equal(t, apply.Applied, w.MustApply(t, want).Operation, "a new desired object is applied at once")
	require.Empty(t, ownedtest.Shown(t, w.Applier.Metrics, "opblocks_write_loop"), "the metric is removed with the loop")
}
