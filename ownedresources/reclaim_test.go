package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clearManagedFields does what some tools do to save space.
func clearManagedFields(t *testing.T, env *testEnv, obj client.Object) {
	t.Helper()
	env.live(t, obj)
	clearing := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
	require.NoError(t, env.other.Patch(t.Context(), obj, clearing))
	require.Empty(t, obj.GetManagedFields())
}

func TestReclaim(t *testing.T) {
	for _, start := range []string{"AfterPost", "AfterApply"} {
		t.Run(start, func(t *testing.T) {
			env := newTestEnv(t)
			want := env.deployment()
			want.Spec.Replicas = nil
			want.Labels["example.com/dropped"] = "x"
			_, err := env.apply(t, want)
			require.NoError(t, err)
			if start == "AfterApply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				_, err = env.apply(t, want)
				require.NoError(t, err)
			}
			live := &appsv1.Deployment{}
			byHand(t, env, live, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
				d.Finalizers = []string{"example.com/hold"}
				d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"})
			})
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
			require.NoError(t, env.other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
			clearManagedFields(t, env, live)
			env.expect(t, want, Unchanged, none...)

			want = want.DeepCopy()
			delete(want.Labels, "example.com/dropped")
			want.Spec.Template.Spec.Containers[0].Env = nil
			changes, err := Diff(t.Context(), env.client, env.owner, want.DeepCopy())
			require.NoError(t, err)
			require.Equal(t, Applied, changes[0].Operation)
			var paths []string
			for _, d := range changes[0].Differences {
				paths = append(paths, d.Path)
			}
			require.Contains(t, paths, "metadata.labels[example.com/dropped]", "%v", changes[0].Differences)
			require.Contains(t, paths, "spec.template.spec.containers[{\"name\":\"web\"}].env", "%v", changes[0].Differences)
			require.Len(t, paths, 2, "%v", changes[0].Differences)

			_, err = env.apply(t, want)
			require.NoError(t, err)
			check := func() {
				env.live(t, live)
				require.NotContains(t, live.Labels, "example.com/dropped")
				require.Empty(t, live.Spec.Template.Spec.Containers[0].Env)
				require.EqualValues(t, 7, *live.Spec.Replicas)
				require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
				require.Equal(t, []string{"example.com/hold"}, live.Finalizers)
				require.Len(t, live.OwnerReferences, 2)
			}
			check()
			env.expect(t, want, Unchanged, none...)

			byHand(t, env, live, func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" })
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			env.expect(t, want, Applied, "PATCH deployments")
			check()
			require.Equal(t, "x", live.Labels["theirs"], "what others set since then is known to be theirs")
			live.Finalizers = nil
			require.NoError(t, env.other.Update(t.Context(), live))
		})
	}
}

func TestReclaimDataKey(t *testing.T) {
	env := newTestEnv(t)
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-settings"}, Data: map[string]string{"a": "1", "b": "2"}}
	live := &corev1.ConfigMap{}
	read := func() {
		require.NoError(t, env.other.Get(t.Context(), types.NamespacedName{Namespace: env.namespace, Name: "web-settings"}, live))
	}
	env.expect(t, want, Created, "POST configmaps")
	read()
	require.NoError(t, env.other.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
	want = want.DeepCopy()
	delete(want.Data, "b")
	_, err := env.apply(t, want)
	require.NoError(t, err)
	read()
	require.Equal(t, map[string]string{"a": "1"}, live.Data)
	env.expect(t, want, Unchanged, none...)
}

// If nothing of ours has changed, our fields are known, and those of others are left alone.
func TestReclaimOnDrift(t *testing.T) {
	env := newTestEnv(t)
	want := env.deployment()
	want.Labels["example.com/ours"] = "x"
	_, err := env.apply(t, want)
	require.NoError(t, err)
	live := &appsv1.Deployment{}
	clearManagedFields(t, env, live)
	byHand(t, env, live, func(d *appsv1.Deployment) {
		d.Labels["example.com/theirs"] = "x"
		d.Spec.Template.Spec.Containers[0].Image = "evil"
	})
	_, err = env.apply(t, want)
	require.NoError(t, err)
	want = want.DeepCopy()
	delete(want.Labels, "example.com/ours")
	env.expect(t, want, Applied, "PATCH deployments")
	env.live(t, live)
	require.Equal(t, "x", live.Labels["example.com/theirs"])
	require.NotContains(t, live.Labels, "example.com/ours")
}
