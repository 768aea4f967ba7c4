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

// settings returns a child of a ConfigMap.
func settings(owner *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-settings"}, Data: map[string]string{"a": "b"}}
}

func TestReconcileWaitsForReadiness(t *testing.T) {
	w := newTestEnv(t)
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

// Deletions of owners and children clear what is remembered of them.
func TestDeletionsClearMemory(t *testing.T) {
	w := newTestEnv(t)
	set := Ensure(Build(settings))
	for range 2 { // the second time it is found to be as desired
		require.NoError(t, set.Reconcile(t.Context(), w.client, w.owner))
	}
	d, err := set.applier.desire(&owner{client: w.client, reference: metav1.OwnerReference{UID: w.owner.UID}}, settings(w.owner), &childOptions{})
	require.NoError(t, err)
	set.applier.owners.setRecreated(d)
	require.Len(t, set.applier.owners.byUID, 1)
	require.NotZero(t, set.applier.owners.byUID[w.owner.UID].pruned)
	require.Len(t, set.applier.owners.byUID[w.owner.UID].recreated, 1)
	require.Len(t, set.applier.children.byUID, 1)

	child := settings(w.owner)
	require.True(t, w.exists(t, child))
	set.observe().Delete(deletionOf(child))
	set.observeOwners().Delete(t.Context(), deletionOf(w.owner), nil)
	require.Empty(t, set.applier.owners.byUID)
	require.Empty(t, set.applier.children.byUID)
}

func deletionOf(obj client.Object) event.DeleteEvent { return event.DeleteEvent{Object: obj} }
