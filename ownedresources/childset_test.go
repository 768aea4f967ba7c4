package ownedresources

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// settings builds the ConfigMap that is the child of these tests.
func settings(owner *Shop) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-settings"}, Data: map[string]string{"a": "b"}}
}

func TestReconcileWaitsForReadiness(t *testing.T) {
	w := newEnvInMemory(t)
	s := Ensure(Build(func(*Shop) *appsv1.Deployment { return w.Deployment() }))
	err := s.Reconcile(t.Context(), w.Client, w.Owner)
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	require.ErrorContains(t, err, "web: Replicas: 0/2", "created is not ready")
	var live appsv1.Deployment
	w.Live(t, &live)
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"},
		}}
	require.NoError(t, w.Other.Status().Update(context.Background(), &live))
	require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
}

// When owners and children are deleted, the set forgets what it remembers about them.
func TestDeletionsClearMemory(t *testing.T) {
	w := newEnvInMemory(t)
	s := Ensure(Build(settings))
	for range 2 { // the second reconcile finds the child as desired, and remembers that
		require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
	}
	d, err := s.set.Applier.Desire(&owned.Owner{Client: w.Client, Reference: metav1.OwnerReference{UID: w.Owner.UID}}, settings(w.Owner), &owned.Options{})
	require.NoError(t, err)
	s.set.Applier.Recreations.Begin(d)
	require.Len(t, s.set.Applier.Recreations.ByOwner, 1)
	require.Len(t, s.set.Applier.Children.ByUID, 1)

	child := settings(w.Owner)
	require.True(t, w.Exists(t, child))
	kind, err := s.set.Kind(child, w.Client.Scheme())
	require.NoError(t, err)
	kind.Observe().Delete(deletionOf(child))
	s.set.ObserveOwners().Delete(t.Context(), deletionOf(w.Owner), nil)
	require.Empty(t, s.set.Owners.ByUID)
	require.Empty(t, s.set.Applier.Recreations.ByOwner)
	require.Empty(t, s.set.Applier.Children.ByUID)
}

func deletionOf(obj client.Object) event.DeleteEvent { return event.DeleteEvent{Object: obj} }

// The children have all options that a Secret may have, and an order, and are in another namespace than the owner.
// The function of Retain changes its result. Still, a reconcile that changes nothing sends only the reads that a
// cache serves.
func TestReconcileOfCombinedOptionsIsQuiet(t *testing.T) {
	env, elsewhere := newEnvInMemory(t), newEnvInMemory(t)
	env.Owner.Finalizers = []string{"children.opblocks.dev/step"}
	require.NoError(t, env.Other.Update(t.Context(), env.Owner))
	passwords := map[string]string{}
	for _, retain := range []bool{true, false, true} {
		options := []childOption{withAnywhere(), withRetain(func(*Shop) bool { return retain }), withIfServed(), withAdopt(), withGenerate("password", 9)}
		first := with(Build(func(*Shop) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.Namespace, Name: "first"}}
		}), options...)
		list := with(BuildEachFrom(first.Live(), func(_ *Shop, live *corev1.Secret) (all []*corev1.Secret, err error) {
			for _, name := range []string{"a", "b", "c"} {
				all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"first": live.Name}}})
			}
			return all, nil
		}), options...).After(first)
		s := Ensure(list, first).RemoveInOrder()
		s.SetName("step")
		for range 2 {
			require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
		}
		for range 3 {
			env.Requests.Sent()
			require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
			require.Equal(t, slices.Repeat([]string{"GET secrets"}, 4), env.Requests.Sent(), "a cache serves these reads")
		}
		for _, name := range []string{"a", "b", "c"} {
			live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
			require.True(t, env.Exists(t, live))
			require.Len(t, live.Data["password"], 9)
			require.Contains(t, []string{"", string(live.Data["password"])}, passwords[name], "the value stays")
			passwords[name] = string(live.Data["password"])
			require.Equal(t, 1, record.OrderOf(live))
		}
	}
}
