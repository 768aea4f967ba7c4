package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
)

// A method that is called after Ensure would change a part of what the set does.
func TestChangeAfterEnsure(t *testing.T) {
	child := Build(settings)
	set := Ensure(child)
	child.CreateOnly(func(*configMap) {})
	require.EqualError(t, set.Reconcile(t.Context(), nil, nil), "child 1, a ConfigMap: its method CreateOnly was called after Ensure: call it before")
}

func TestCreateOnly(t *testing.T) {
	w := newServerEnv(t)
	initial := withCreateOnly(func(d *appsv1.Deployment) {
		d.Spec.Replicas = nil
		delete(d.Labels, "created-with")
	})
	want := func(image string) *appsv1.Deployment {
		d := w.deployment()
		d.Spec.Replicas = new(int32(3))
		d.Labels["created-with"] = "this"
		d.Spec.Template.Spec.Containers[0].Image = image
		return d
	}
	result, err := w.apply(t, want("nginx:1.27"), initial)
	require.NoError(t, err)
	require.EqualValues(t, 3, *result.Object.(*appsv1.Deployment).Spec.Replicas)
	var live appsv1.Deployment
	byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	for _, image := range []string{"nginx:1.27", "nginx:1.28", "nginx:1.29"} {
		_, err = w.apply(t, want(image), initial)
		require.NoError(t, err)
		w.live(t, &live)
		require.EqualValues(t, 5, *live.Spec.Replicas, "it is neither repaired nor reset by an apply")
		require.Equal(t, "this", live.Labels["created-with"], "it is not removed either")
		require.Equal(t, image, live.Spec.Template.Spec.Containers[0].Image)
	}
}

func TestCreateOnlyStringData(t *testing.T) {
	w := newServerEnv(t)
	password := ""
	build := func() *corev1.Secret {
		password += "x"
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"password": password}}
	}
	once := withCreateOnly(func(s *corev1.Secret) { s.StringData = nil })
	for range 3 {
		_, err := w.apply(t, build(), once)
		require.NoError(t, err)
	}
	var live corev1.Secret
	w.live(t, &live)
	require.Equal(t, "x", string(live.Data["password"]))
}

func TestAdopt(t *testing.T) {
	w := newServerEnv(t)
	theirs := w.deployment()
	theirs.Spec.Replicas = new(int32(9))
	theirs.Labels["theirs"] = "stays"
	require.NoError(t, w.other.Create(t.Context(), theirs))
	result, err := w.apply(t, w.deployment(), withAdopt())
	require.NoError(t, err)
	require.Equal(t, apply.Applied, result.Operation)
	var live appsv1.Deployment
	w.live(t, &live)
	require.True(t, metav1.IsControlledBy(&live, w.owner))
	require.EqualValues(t, 2, *live.Spec.Replicas)
	require.Equal(t, "stays", live.Labels["theirs"])
	w.expect(t, w.deployment(), apply.Unchanged, none...)

	w.owner = w.newOwnerNamed(t, "another")
	again := w.deployment()
	again.Name = "web"
	_, err = w.apply(t, again, withAdopt())
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned, "an object that has a controller is never adopted")
}
