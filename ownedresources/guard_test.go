package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWriteLoopIsNoticedAndSlowedDown(t *testing.T) {
	w := newWorld(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w.applier.guard = newGuard(clock, w.applier.metrics)
	w.expect(t, w.deployment(), Created, "POST deployments")
	fight := func() (Result, error) {
		byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(31337)) })
		return w.apply(t, w.deployment())
	}
	for range loopWrites + 1 {
		result, err := fight()
		require.NoError(t, err)
		require.Equal(t, Applied, result.Operation, "drift is repaired at once")
	}
	recorder := events.NewFakeRecorder(10)
	w.applier.recorder = recorder
	_, err := fight()
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	reason, after := wait.Waiting()
	require.Equal(t, "WriteLoop", reason)
	require.Equal(t, loopFirst, after)
	require.ErrorContains(t, err, "spec.replicas", "the field is named")
	require.NotContains(t, err.Error(), "31337", "its value is not: it may be secret")
	_, err = w.apply(t, w.deployment())
	require.ErrorAs(t, err, &wait)
	require.Len(t, recorder.Events, 1, "one event a loop")
	require.Contains(t, <-recorder.Events, "Warning WriteLoop Deployment "+w.namespace+"/web is changed back again and again")
	w.applier.recorder = nil
	require.Len(t, shown(t, w.applier.metrics, "opblocks_write_loop"), 1)

	clock.SetTime(clock.Now().Add(loopFirst))
	result, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation, "it is not given up")
	_, err = fight()
	require.ErrorAs(t, err, &wait)
	_, after = wait.Waiting()
	require.Equal(t, 2*loopFirst, after, "the next one comes later")

	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(2))
		d.Spec.Template.Spec.Containers[0].Image = "other"
	})
	result, err = w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation, "other drift is no loop")

	want := w.deployment()
	want.Spec.Replicas = new(int32(3))
	result, err = w.apply(t, want)
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation, "what is wanted anew is written at once")
	require.Empty(t, shown(t, w.applier.metrics, "opblocks_write_loop"), "the metric goes with its reason")
}

func TestWriteLoopEnds(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	g := newGuard(clock, newMetrics())
	world := newWorld(t)
	k, err := builtInKinds.of(world.deployment(), world.client.Scheme())
	require.NoError(t, err)
	w := &wanted{kind: k, object: world.deployment()}
	for range 30 {
		g.note(w, "u", "spec.replicas")
	}
	wait, begins := g.hold(w, "u", "spec.replicas")
	require.Equal(t, loopLast, wait, "bounded")
	require.True(t, begins)
	clock.SetTime(clock.Now().Add(loopLast + loopGap))
	wait, _ = g.hold(w, "u", "spec.replicas")
	require.Zero(t, wait, "after a quiet while all is forgotten")
	require.Empty(t, g.byUID)
	g.note(w, "u", "spec.replicas")
	g.forget("u")
	require.Empty(t, g.byUID, "a deleted object leaves nothing")
}
