package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/opblocks/opblocks/internal/writeloop"
)

func TestSlowDown(t *testing.T) {
	w := newTestEnv(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w.applier.clock = clock
	w.expect(t, w.deployment(), Created, "POST deployments")
	fight := func() (Result, error) {
		byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(31337)) })
		return w.apply(t, w.deployment())
	}
	for range writeloop.Free + 1 {
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
	require.Equal(t, writeloop.MinDelay, after)
	require.ErrorContains(t, err, "spec.replicas", "the field is named")
	require.NotContains(t, err.Error(), "31337", "its value is not: it may be secret")
	_, err = w.apply(t, w.deployment())
	require.ErrorAs(t, err, &wait)
	require.Len(t, recorder.Events, 1, "one event per loop")
	require.Contains(t, <-recorder.Events, "Warning WriteLoop Deployment "+w.namespace+"/web is changed back again and again")
	w.applier.recorder = nil
	require.Len(t, shown(t, w.applier.metrics, "opblocks_write_loop"), 1)

	clock.SetTime(clock.Now().Add(writeloop.MinDelay))
	result, err := w.apply(t, w.deployment())
	require.NoError(t, err)
	require.Equal(t, Applied, result.Operation, "it is still repaired")
	_, err = fight()
	require.ErrorAs(t, err, &wait)
	_, after = wait.Waiting()
	require.Equal(t, 2*writeloop.MinDelay, after, "the next one comes later")

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
	require.Equal(t, Applied, result.Operation, "a new desired object is applied at once")
	require.Empty(t, shown(t, w.applier.metrics, "opblocks_write_loop"), "the metric is removed with the loop")
}

func TestWriteLoopEnds(t *testing.T) {
	now := time.Unix(0, 0)
	m := newChildMemory(newMetrics(), &versions{})
	k, err := builtInKinds.of(&corev1.ConfigMap{}, scheme.Scheme)
	require.NoError(t, err)
	d := &desired{kind: k, object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}}
	for range 30 {
		m.countWrite(d, "u", "spec.replicas", now)
	}
	wait, begins := m.delayWrite(d, "u", "spec.replicas", now)
	require.Equal(t, writeloop.MaxDelay, wait, "the delay is bounded")
	require.True(t, begins)
	now = now.Add(writeloop.MaxDelay + writeloop.Gap)
	wait, _ = m.delayWrite(d, "u", "spec.replicas", now)
	require.Zero(t, wait, "the loop ends when nothing was written for a while")
	require.Empty(t, m.byUID)
	m.countWrite(d, "u", "spec.replicas", now)
	m.forget("u")
	require.Empty(t, m.byUID, "nothing is left of a deleted object")
}
