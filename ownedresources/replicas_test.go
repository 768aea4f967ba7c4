package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReplicasSetThenUnsetStay(t *testing.T) {
	for _, start := range []string{"after the POST", "after an apply"} {
		t.Run(start, func(t *testing.T) {
			w := newWorld(t)
			want := w.deployment()
			want.Spec.Replicas = new(int32(4))
			w.expect(t, want, Created, "POST deployments")
			if start == "after an apply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
			}
			want.Spec.Replicas = nil
			_, err := w.apply(t, want)
			require.NoError(t, err)
			var live appsv1.Deployment
			w.live(t, &live)
			require.EqualValues(t, 4, *live.Spec.Replicas, "they are an autoscaler's now, and do not fall to 1")
			w.expect(t, want, Unchanged, none...)

			byHand(t, w, &live, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
			w.expect(t, want, Unchanged, none...)
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			w.expect(t, want, Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 7, *live.Spec.Replicas)

			want.Spec.Replicas = new(int32(2))
			w.expect(t, want, Applied, "PATCH deployments")
			w.live(t, &live)
			require.EqualValues(t, 2, *live.Spec.Replicas, "set again, they are ours again")
		})
	}
}

func TestReplicasUnsetAreTheAutoscalers(t *testing.T) {
	w := newWorld(t)
	want := w.deployment()
	want.Spec.Replicas = nil
	w.expect(t, want, Created, "POST deployments")
	live := &appsv1.Deployment{}
	w.live(t, live)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, w.other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
	w.expect(t, want, Unchanged, none...)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	w.live(t, live)
	require.EqualValues(t, 7, *live.Spec.Replicas)
}
