package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestImmutableField(t *testing.T) {
	changed := func(w *world) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
	t.Run("is a clear error", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		_, err := w.apply(t, changed(w))
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "field is immutable")
	})
	t.Run("recreates on request, once", func(t *testing.T) {
		w := newWorld(t)
		before := w.expect(t, w.deployment(), Created, "POST deployments")
		_, err := w.apply(t, changed(w), Recreate())
		var wait *WaitingError
		require.ErrorAs(t, err, &wait)
		require.False(t, w.exists(t, w.deployment()))
		result, err := w.apply(t, changed(w), Recreate())
		require.NoError(t, err)
		require.Equal(t, Created, result.Operation)
		require.NotEqual(t, before.GetUID(), result.Object.GetUID())

		// Somebody puts the old one back, again and again.
		require.NoError(t, w.other.Delete(t.Context(), result.Object.DeepCopyObject().(client.Object)))
		old := w.deployment()
		old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		require.NoError(t, w.other.Create(t.Context(), old))
		w.applier.writes.Forget(old, client.ObjectKeyFromObject(old))
		_, err = w.apply(t, changed(w), Recreate())
		require.ErrorContains(t, err, "recreated once for this change already")
		require.True(t, w.exists(t, w.deployment()))
	})
	t.Run("never deletes for an invalid object", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		bad := w.deployment()
		bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
		_, err := w.apply(t, bad, Recreate())
		require.ErrorContains(t, err, "is not recreated, since that would be refused too")
		require.True(t, w.exists(t, w.deployment()))
	})
}

// What the cache shows as ours may be somebody else's by now.
func TestRecreateLooksTwice(t *testing.T) {
	w := newWorld(t)
	ours := w.expect(t, w.deployment(), Created, "POST deployments").(*appsv1.Deployment).DeepCopy()
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.newOwner(t, "other"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	})
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	want, err := w.applier.want(&o, ours, &childOptions{recreate: true})
	require.NoError(t, err)
	var owned *OwnershipError
	require.ErrorAs(t, w.applier.recreate(t.Context(), want, errors.New("immutable")), &owned)
	require.True(t, w.exists(t, w.deployment()))
}

func TestRecreatedOnceCountsAnewAfterAnotherChange(t *testing.T) {
	w := newWorld(t)
	with := func(label string) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels["is"], d.Spec.Template.Labels["is"] = label, label
		return d
	}
	w.expect(t, with("a"), Created, "POST deployments")
	for _, label := range []string{"b", "a", "b"} {
		_, err := w.apply(t, with(label), Recreate())
		require.ErrorAs(t, err, new(*WaitingError), "to %s", label)
		result, err := w.apply(t, with(label), Recreate())
		require.NoError(t, err)
		require.Equal(t, Created, result.Operation)
	}
}
