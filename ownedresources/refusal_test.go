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

func TestRecreate(t *testing.T) {
	changed := func(w *world) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		return d
	}
	t.Run("NotAllowed", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		_, err := w.apply(t, changed(w))
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "field is immutable")
	})
	t.Run("OncePerChange", func(t *testing.T) {
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
	t.Run("InvalidObject", func(t *testing.T) {
		w := newWorld(t)
		w.expect(t, w.deployment(), Created, "POST deployments")
		bad := w.deployment()
		bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
		_, err := w.apply(t, bad, Recreate())
		require.ErrorContains(t, err, "is not recreated, since that would be refused too")
		require.True(t, w.exists(t, w.deployment()))
	})
}

// The cache may show an object as ours that has another owner by now.
func TestRecreateReadsPastTheCache(t *testing.T) {
	w := newWorld(t)
	ours := w.expect(t, w.deployment(), Created, "POST deployments").(*appsv1.Deployment).DeepCopy()
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.newOwner(t, "other"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	})
	d, err := w.applier.desire(ownerOf(t, w), ours, &childOptions{recreate: true})
	require.NoError(t, err)
	immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web", nil)
	_, err = w.applier.recoverFrom(t.Context(), d, immutable)
	var owned *OwnershipError
	require.ErrorAs(t, err, &owned)
	require.True(t, w.exists(t, w.deployment()))
}

func TestRecreateAgainAfterAnotherChange(t *testing.T) {
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

func TestWithoutValues(t *testing.T) {
	err := withoutValues(apierrors.NewBadRequest(`spec.template: Invalid value: {"env":[{"value":"canary"}]}: field is immutable`))
	require.Equal(t, "spec.template: Invalid value: {…}: field is immutable", err.Error())
	require.True(t, apierrors.IsBadRequest(err), "it still is the API server's error")
}

// An API server of an older version does not have the field.
func TestUnknownFieldAsInvalid(t *testing.T) {
	err := unknownFieldAsInvalid(apierrors.NewInternalError(errors.New(`failed to create typed patch object (ns/web; apps/v1, Kind=Deployment): .spec.new: field not declared in schema`)))
	require.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, ".spec.new: field not declared in schema")
	other := apierrors.NewInternalError(errors.New("etcd is full"))
	require.Same(t, other, unknownFieldAsInvalid(other), "other errors of the server stay as they are")
}
