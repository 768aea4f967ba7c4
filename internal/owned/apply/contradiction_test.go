package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/write"
)

func TestApplyReplacesNothingElse(t *testing.T) {
	env := newServer(t)
	want := env.Deployment()
	want.Spec.Replicas = nil
	env.MustApply(t, want)
	var live appsv1.Deployment
	ownedtest.ByHand(t, env, &live, func(d *appsv1.Deployment) {
		pod := &d.Spec.Template
		pod.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "INJECTED", Value: "x"})
		d.Labels["team"] = "red"
		d.Spec.RevisionHistoryLimit = new(int32(3))
	})
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, env.Other.SubResource("scale").Update(t.Context(), &live, client.WithSubResourceBody(scale)))

	want.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	env.MustApply(t, want)
	check := func() {
		env.Live(t, &live)
		require.Equal(t, appsv1.RecreateDeploymentStrategyType, live.Spec.Strategy.Type)
		require.EqualValues(t, 7, *live.Spec.Replicas)
		require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
		require.Len(t, live.Spec.Template.Spec.Containers, 2)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 2)
		require.Equal(t, "red", live.Labels["team"])
		require.EqualValues(t, 3, *live.Spec.RevisionHistoryLimit)
	}
	check()
	env.Settled(t, want)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
	env.MustApply(t, want)
	check()
}

func TestApplyOfAWrongObject(t *testing.T) {
	env := newServer(t)
	env.Expect(t, env.Deployment(), apply.Created, "POST deployments")
	bad := env.Deployment()
	bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
	_, err := env.Apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "containerPort")
	require.LessOrEqual(t, len(env.Requests.Sent()), 5+write.MaxAttempts, "a mistake ends the search soon")
	env.Settled(t, env.Deployment())
}
