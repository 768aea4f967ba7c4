package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

func TestCreateOnly(t *testing.T) {
	w := newServer(t)
	initial := withCreateOnly(func(d *appsv1.Deployment) {
		d.Spec.Replicas = nil
		delete(d.Labels, "created-with")
	})
	want := func(image string) *appsv1.Deployment {
		d := w.Deployment()
		d.Spec.Replicas = new(int32(3))
		d.Labels["created-with"] = "this"
		d.Spec.Template.Spec.Containers[0].Image = image
		return d
	}
	result := w.MustApply(t, want("nginx:1.27"), initial)
	require.EqualValues(t, 3, *result.Object.(*appsv1.Deployment).Spec.Replicas)
	var live appsv1.Deployment
	ownedtest.ByHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	for _, image := range []string{"nginx:1.27", "nginx:1.28", "nginx:1.29"} {
		w.MustApply(t, want(image), initial)
		w.Live(t, &live)
		require.EqualValues(t, 5, *live.Spec.Replicas, "it is neither repaired nor reset by an apply")
		require.Equal(t, "this", live.Labels["created-with"], "it is not removed either")
		require.Equal(t, image, live.Spec.Template.Spec.Containers[0].Image)
	}
}

func TestCreateOnlyStringData(t *testing.T) {
	w := newInMemory(t)
	password := ""
	build := func() *corev1.Secret {
		password += "x"
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"password": password}}
	}
	once := withCreateOnly(func(s *corev1.Secret) { s.StringData = nil })
	for range 3 {
		w.MustApply(t, build(), once)
	}
	var live corev1.Secret
	w.Live(t, &live)
	require.Equal(t, "x", string(live.Data["password"]))
}

func TestAdopt(t *testing.T) {
	w := newServer(t)
	theirs := w.Deployment()
	theirs.Spec.Replicas = new(int32(9))
	theirs.Labels["theirs"] = "stays"
	require.NoError(t, w.Other.Create(t.Context(), theirs))
	require.Equal(t, apply.Applied, w.MustApply(t, w.Deployment(), withAdopt()).Operation)
	var live appsv1.Deployment
	w.Live(t, &live)
	require.True(t, metav1.IsControlledBy(&live, w.Owner))
	require.EqualValues(t, 2, *live.Spec.Replicas)
	require.Equal(t, "stays", live.Labels["theirs"])
	w.Settled(t, w.Deployment())

	w.Owner = w.NewOwnerNamed(t, "another")
	again := w.Deployment()
	again.Name = "web"
	_, err := w.Apply(t, again, withAdopt())
	var owned *owned.OwnershipError
	require.ErrorAs(t, err, &owned, "an object that has a controller is never adopted")
}
