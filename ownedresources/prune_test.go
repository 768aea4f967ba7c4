package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

func TestPrune(t *testing.T) {
	w := newEnvInMemory(t)
	wantExtra, broken := true, error(nil)
	extra := func(owner *Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: "extra"}}
	}
	newSet := func() *ChildSet[*Shop] {
		s := Ensure(
			BuildOrError(func(owner *Shop) (*corev1.ConfigMap, error) { return settings(owner), broken }),
			Build(func(owner *Shop) *corev1.ConfigMap {
				if !wantExtra {
					return nil
				}
				return extra(owner)
			}),
		)
		s.SetName("one")
		return s
	}
	// Another set of the same owner has a child of the same kind.
	other := Ensure(Build(func(*Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-the-other-set"}}
	}))
	other.SetName("two")
	byHand := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "by-hand",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, testkinds.ShopKind)},
	}}
	require.NoError(t, w.Other.Create(t.Context(), byHand))

	s := newSet()
	require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
	require.NoError(t, other.Reconcile(t.Context(), w.Client, w.Owner))
	require.True(t, w.Exists(t, extra(w.Owner)))

	wantExtra, broken = false, errors.New("cannot be built")
	require.ErrorIs(t, s.Reconcile(t.Context(), w.Client, w.Owner), broken)
	require.True(t, w.Exists(t, extra(w.Owner)), "nothing is pruned when building failed")

	broken = nil
	s = newSet() // a restart: its memory is empty
	w.Requests.Sent()
	require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
	require.False(t, w.Exists(t, extra(w.Owner)), "a child that is not desired is deleted, also after a restart")
	require.Equal(t, []string{"GET configmaps", "GET shops", "DELETE configmaps"}, w.Requests.Sent(), "reads the child that stays and the owner, then deletes")
	for _, kept := range []string{"web-settings", "of-the-other-set", "by-hand"} {
		require.True(t, w.Exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kept}}), kept)
	}

	require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
	require.Equal(t, []string{"GET configmaps"}, w.Requests.Sent(), "children are listed once")
}

// The cache of a process that has just started may contain an old version of the owner, in which a child was not
// desired yet. The child must not be pruned.
func TestPruneConfirmsTheOwner(t *testing.T) {
	w := newEnvInMemory(t)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "wanted-now"}}
	build := func(owner *Shop) *corev1.ConfigMap {
		if owner.Spec.Content == "" {
			return nil
		}
		return owned.DeepCopy()
	}
	old := w.Owner.DeepCopy()
	now := w.Owner.DeepCopy()
	now.Spec.Content = "desired"
	require.NoError(t, w.Other.Update(t.Context(), now))
	s := Ensure(Build(build))
	require.NoError(t, s.Reconcile(t.Context(), w.Client, now))

	none := Ensure(Build(build), Build(func(*Shop) *corev1.Secret { return nil }))
	many := Ensure(
		Build(func(*Shop) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
		}),
		Build(func(*Shop) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "two"}}
		}))
	none.SetName("several")
	many.SetName("several")
	require.NoError(t, many.Reconcile(t.Context(), w.Client, now))
	unwanted := now.DeepCopy()
	unwanted.Spec.Content = ""
	w.Requests.Sent()
	require.NoError(t, none.Reconcile(t.Context(), w.Client, unwanted))
	require.Equal(t, []string{"GET shops", "DELETE configmaps", "DELETE secrets"}, w.Requests.Sent(), "the owner is read once for all deletions")

	restarted := Ensure(Build(build))
	require.True(t, apierrors.IsConflict(restarted.Reconcile(t.Context(), w.Client, old)), "the next pass tries again when the cache has caught up")
	require.True(t, w.Exists(t, owned))
	require.NoError(t, restarted.Reconcile(t.Context(), w.Client, now))
	require.True(t, w.Exists(t, owned))
}

func TestPruneWaitsForTheReplacement(t *testing.T) {
	w := newEnvInMemory(t)
	name := "one"
	s := Ensure(Build(func(*Shop) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}))
	require.NoError(t, s.Reconcile(t.Context(), w.Client, w.Owner))
	name = "Not A Name"
	require.True(t, apierrors.IsInvalid(s.Reconcile(t.Context(), w.Client, w.Owner)))
	require.True(t, w.Exists(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
}
