package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
)

func TestMigrateDropsFieldsOfThePost(t *testing.T) {
	w := newServer(t)
	w.Expect(t, w.Deployment(), apply.Created, "POST deployments")

	want := w.Deployment()
	want.Spec.Template.Spec.Containers[0].Env = nil
	w.Expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.Live(t, &live)
	require.Empty(t, live.Spec.Template.Spec.Containers[0].Env, "what the POST set can be removed")
	for _, entry := range live.ManagedFields {
		require.False(t, entry.Manager == "configmap" && entry.Operation == metav1.ManagedFieldsOperationUpdate,
			"the entry of the POST would hold fields for ever")
	}

	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.Expect(t, want, apply.Applied, "PATCH deployments")
	w.Settled(t, want)
}

func TestMigrateFromAFormerManager(t *testing.T) {
	w := newServer(t)
	old := w.Deployment()
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, testkinds.ShopKind)}
	old.Spec.Template.Spec.Containers[0].Env = append(old.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "OLD"})
	require.NoError(t, w.Other.Create(t.Context(), old, client.FieldOwner("manager")))
	require.Equal(t, apply.Applied, w.MustApply(t, w.Deployment(), withFormerManagers("manager")).Operation)
	var live appsv1.Deployment
	w.Live(t, &live)
	require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 1, "a field that the older operator set and that is not desired is removed")
	w.Settled(t, w.Deployment())
}

func TestReleaseReplicas(t *testing.T) {
	for _, start := range []string{"AfterPost", "AfterApply"} {
		t.Run(start, func(t *testing.T) {
			w := newServer(t)
			want := w.Deployment()
			want.Spec.Replicas = new(int32(4))
			w.Expect(t, want, apply.Created, "POST deployments")
			if start == "AfterApply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				w.Expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			}
			want.Spec.Replicas = nil
			w.MustApply(t, want)
			var live appsv1.Deployment
			w.Live(t, &live)
			require.EqualValues(t, 4, *live.Spec.Replicas, "they are left to an autoscaler, and do not fall to 1")
			w.Settled(t, want)

			ownedtest.ByHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
			w.Settled(t, want)
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			w.Expect(t, want, apply.Applied, "PATCH deployments")
			w.Live(t, &live)
			require.EqualValues(t, 7, *live.Spec.Replicas)

			want.Spec.Replicas = new(int32(2))
			w.Expect(t, want, apply.Applied, "PATCH deployments")
			w.Live(t, &live)
			require.EqualValues(t, 2, *live.Spec.Replicas, "set again, they are applied again")
		})
	}
}

func TestReplicasThatWereNeverSet(t *testing.T) {
	w := newServer(t)
	want := w.Deployment()
	want.Spec.Replicas = nil
	w.Expect(t, want, apply.Created, "POST deployments")
	live := &appsv1.Deployment{}
	w.Live(t, live)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, w.Other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
	w.Settled(t, want)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.Expect(t, want, apply.Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	w.Live(t, live)
	require.EqualValues(t, 7, *live.Spec.Replicas)
}
