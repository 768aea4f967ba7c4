package ownedresources

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// settings and extra are children of a ConfigMap, in tests of sets.
func settings(owner *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-settings"}, Data: map[string]string{"a": "b"}}
}

func TestSetWaitsForReadiness(t *testing.T) {
	w := newWorld(t)
	s := Ensure(Build(func(*corev1.ConfigMap) *appsv1.Deployment { return w.deployment() }))
	err := s.Reconcile(t.Context(), w.client, w.owner)
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	require.ErrorContains(t, err, "web: Replicas: 0/2", "created is not ready")
	var live appsv1.Deployment
	w.live(t, &live)
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"},
		}}
	require.NoError(t, w.other.Status().Update(context.Background(), &live))
	require.NoError(t, s.Reconcile(t.Context(), w.client, w.owner))
}

func TestGuardsDelayGetsThroughASet(t *testing.T) {
	err := joinWaits([]*WaitingError{{reason: "A", message: "a"}, {reason: "B", message: "b", after: 7}, {reason: "C", message: "c", after: 5}})
	var wait *WaitingError
	require.ErrorAs(t, err, &wait)
	_, after := wait.Waiting()
	require.EqualValues(t, 5, after)
}

// What is remembered of owners and children goes with them.
func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	set := Ensure(Build(settings))
	for range 2 { // the second time it is found to be as wanted
		require.NoError(t, set.Reconcile(t.Context(), w.client, w.owner))
	}
	want, err := set.applier.want(&owner{client: w.client, reference: metav1.OwnerReference{UID: w.owner.UID}}, settings(w.owner), &childOptions{})
	require.NoError(t, err)
	set.applier.recreated.set(&want)
	require.Len(t, set.pruned.byOwner, 1)
	require.Len(t, set.applier.verified.byUID, 1)

	child := settings(w.owner)
	require.True(t, w.exists(t, child))
	set.observe().Delete(deletionOf(child))
	set.forgetOwners().Delete(t.Context(), deletionOf(w.owner), nil)
	require.Empty(t, set.pruned.byOwner)
	require.Empty(t, set.applier.verified.byUID)
	require.Empty(t, set.applier.recreated.byName)
}

func deletionOf(obj client.Object) event.DeleteEvent { return event.DeleteEvent{Object: obj} }
