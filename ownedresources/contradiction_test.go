package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/write"
)

var claim = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}

func (env *serverEnv) nodePortService(nodePort int32) *corev1.Service {
	s := NewService(env.owner, map[string]string{"app": "web"}, corev1.ServicePort{Port: 80, NodePort: nodePort})
	s.Spec.Type = corev1.ServiceTypeNodePort
	return s
}

func asUnstructured(t *testing.T, env *serverEnv, o client.Object) client.Object {
	t.Helper()
	k, err := env.applier.Kinds.Of(o, env.client.Scheme())
	require.NoError(t, err)
	body, err := k.Comparer.AppendApply(nil, o, k.GVK, "", "")
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(body))
	return u
}

func TestApplyReplacesNothingElse(t *testing.T) {
	env := newServerEnv(t)
	want := env.deployment()
	want.Spec.Replicas = nil
	_, err := env.apply(t, want)
	require.NoError(t, err)
	var live appsv1.Deployment
	byHand(t, env, &live, func(d *appsv1.Deployment) {
		pod := &d.Spec.Template
		pod.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "INJECTED", Value: "x"})
		d.Labels["team"] = "red"
		d.Spec.RevisionHistoryLimit = new(int32(3))
	})
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	require.NoError(t, env.other.SubResource("scale").Update(t.Context(), &live, client.WithSubResourceBody(scale)))

	want.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	_, err = env.apply(t, want)
	require.NoError(t, err)
	check := func() {
		env.live(t, &live)
		require.Equal(t, appsv1.RecreateDeploymentStrategyType, live.Spec.Strategy.Type)
		require.EqualValues(t, 7, *live.Spec.Replicas)
		require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
		require.Len(t, live.Spec.Template.Spec.Containers, 2)
		require.Len(t, live.Spec.Template.Spec.Containers[0].Env, 2)
		require.Equal(t, "red", live.Labels["team"])
		require.EqualValues(t, 3, *live.Spec.RevisionHistoryLimit)
	}
	check()
	env.expect(t, want, apply.Unchanged, none...)
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
	_, err = env.apply(t, want)
	require.NoError(t, err)
	check()
}

func TestApplyOfAWrongObject(t *testing.T) {
	env := newServerEnv(t)
	env.expect(t, env.deployment(), apply.Created, "POST deployments")
	bad := env.deployment()
	bad.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 70000
	_, err := env.apply(t, bad)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "containerPort")
	require.LessOrEqual(t, len(env.sent.Sent()), 5+write.MaxAttempts, "a mistake ends the search soon")
	env.expect(t, env.deployment(), apply.Unchanged, none...)
}

// TestApplyEmptiesAStruct drops the last field of a struct that is still desired. A server-side apply would leave null in
// its place, which the schema of the custom resource forbids.
func TestApplyEmptiesAStruct(t *testing.T) {
	env := newServerEnv(t)
	require.NoError(t, controlPlane(t).InstallCRDs(t.Context(), "../internal/owned/testkinds/gadgets.yaml"))
	gadget := func(size int64, subject map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"size": size}
		if subject != nil {
			spec["subject"] = subject
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(upgradeGadget)
		u.SetName("web")
		return u
	}
	named := map[string]any{"organization": "shop", "units": []any{"a"}}
	for _, start := range []int64{1, 2} {
		_, err := env.apply(t, gadget(start, named))
		require.NoError(t, err)
	}
	live := gadget(0, nil)
	env.live(t, live)
	live.SetLabels(map[string]string{"team": "red"})
	require.NoError(t, env.other.Update(t.Context(), live, client.FieldOwner("kubectl-edit")))

	for _, subject := range []map[string]any{{}, named, {}} {
		_, err := env.apply(t, gadget(3, subject))
		require.NoError(t, err)
		env.live(t, live)
		found, _, err := unstructured.NestedMap(live.Object, "spec", "subject")
		require.NoError(t, err)
		require.Equal(t, subject, found)
		require.Equal(t, "red", live.GetLabels()["team"])
		env.expect(t, gadget(3, subject), apply.Unchanged, none...)
	}
	_, err := env.apply(t, gadget(4, nil))
	require.NoError(t, err)
	env.live(t, live)
	_, there, _ := unstructured.NestedMap(live.Object, "spec", "subject")
	require.False(t, there, "it can be dropped altogether")
}
