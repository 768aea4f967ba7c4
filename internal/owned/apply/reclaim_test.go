package apply_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// clearManagedFields clears the managed fields of an object, as some tools do to save space.
func clearManagedFields(t *testing.T, env *ownedtest.Server, obj client.Object) {
	t.Helper()
	env.Live(t, obj)
	clearing := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
	require.NoError(t, env.Other.Patch(t.Context(), obj, clearing))
	require.Empty(t, obj.GetManagedFields())
}

func TestReclaim(t *testing.T) {
	for _, start := range []string{"AfterPost", "AfterApply"} {
		t.Run(start, func(t *testing.T) {
			env := newServer(t)
			want := env.Deployment()
			want.Spec.Replicas = nil
			want.Labels["example.com/dropped"] = "x"
			env.MustApply(t, want)
			if start == "AfterApply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				env.MustApply(t, want)
			}
			live := &appsv1.Deployment{}
			ownedtest.ByHand(t, env, live, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
				d.Finalizers = []string{"example.com/hold"}
				d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"})
			})
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
			require.NoError(t, env.Other.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)))
			clearManagedFields(t, env, live)
			env.Settled(t, want)

			want = want.DeepCopy()
			delete(want.Labels, "example.com/dropped")
			want.Spec.Template.Spec.Containers[0].Env = nil
			change, err := env.Diff(t, want.DeepCopy())
			require.NoError(t, err)
			require.Equal(t, forecast.Apply, change.Action)
			var paths []string
			for _, d := range change.Differences {
				paths = append(paths, d.Path)
			}
			require.Contains(t, paths, "metadata.labels[example.com/dropped]", "%v", change.Differences)
			require.Contains(t, paths, "spec.template.spec.containers[0].env", "%v", change.Differences)
			require.Len(t, paths, 2, "%v", change.Differences)

			env.MustApply(t, want)
			check := func() {
				env.Live(t, live)
				require.NotContains(t, live.Labels, "example.com/dropped")
				require.Empty(t, live.Spec.Template.Spec.Containers[0].Env)
				require.EqualValues(t, 7, *live.Spec.Replicas)
				require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
				require.Equal(t, []string{"example.com/hold"}, live.Finalizers)
				require.Len(t, live.OwnerReferences, 2)
			}
			check()
			env.Settled(t, want)

			ownedtest.ByHand(t, env, live, func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" })
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			env.Expect(t, want, apply.Applied, "PATCH deployments")
			check()
			require.Equal(t, "x", live.Labels["theirs"], "what others set since then is known to be theirs")
			live.Finalizers = nil
			require.NoError(t, env.Other.Update(t.Context(), live))
		})
	}
}

func TestReclaimDataKey(t *testing.T) {
	env := newServer(t)
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-settings"}, Data: map[string]string{"a": "1", "b": "2"}}
	live := &corev1.ConfigMap{}
	read := func() {
		require.NoError(t, env.Other.Get(t.Context(), types.NamespacedName{Namespace: env.Namespace, Name: "web-settings"}, live))
	}
	env.Expect(t, want, apply.Created, "POST configmaps")
	read()
	require.NoError(t, env.Other.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
	want = want.DeepCopy()
	delete(want.Data, "b")
	env.MustApply(t, want)
	read()
	require.Equal(t, map[string]string{"a": "1"}, live.Data)
	env.Settled(t, want)
}

// If the desired object has not changed since the managed fields were cleared, it is known which fields were ours. The fields of other
// writers stay.
func TestReclaimOnDrift(t *testing.T) {
	env := newServer(t)
	want := env.Deployment()
	want.Labels["example.com/ours"] = "x"
	env.MustApply(t, want)
	live := &appsv1.Deployment{}
	clearManagedFields(t, env, live)
	ownedtest.ByHand(t, env, live, func(d *appsv1.Deployment) {
		d.Labels["example.com/theirs"] = "x"
		d.Spec.Template.Spec.Containers[0].Image = "evil"
	})
	env.MustApply(t, want)
	want = want.DeepCopy()
	delete(want.Labels, "example.com/ours")
	env.Expect(t, want, apply.Applied, "PATCH deployments")
	env.Live(t, live)
	require.Equal(t, "x", live.Labels["example.com/theirs"])
	require.NotContains(t, live.Labels, "example.com/ours")
}

// interruptedClient is the client of a process that ends right after its next server-side apply.
type interruptedClient struct {
	client.Client
	applied, ended bool
}

var errEnded = errors.New("the process has ended")

func (c *interruptedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if c.applied {
		c.ended = true
		return errEnded
	}
	c.applied = patch.Type() == types.ApplyPatchType
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// TestReclaimAfterACrash ends the process after the apply, and before the patch that removes our fields from the entry of
// before-first-apply.
func TestReclaimAfterACrash(t *testing.T) {
	for _, form := range []string{"Typed", "Unstructured"} {
		asForm := func(t *testing.T, env *ownedtest.Server, o client.Object) client.Object {
			if form == "Typed" {
				return o.DeepCopyObject().(client.Object)
			}
			return env.Unstructured(t, o)
		}
		crash := func(t *testing.T, env *ownedtest.Server, want client.Object, options ...ownedtest.Option) {
			t.Helper()
			before, interrupted := env.Client, &interruptedClient{Client: env.Client}
			env.Client = interrupted
			_, err := env.Apply(t, asForm(t, env, want), options...)
			require.ErrorIs(t, err, errEnded)
			require.True(t, interrupted.ended)
			env.Client, env.Applier = before, apply.New()
		}
		setUp := func(t *testing.T) (env *ownedtest.Server, want *appsv1.Deployment) {
			env = newServer(t)
			want = env.Deployment()
			want.Labels["example.com/dropped"] = "x"
			for _, image := range []string{"nginx:1.27", "nginx:1.28"} {
				want.Spec.Template.Spec.Containers[0].Image = image
				env.MustApply(t, asForm(t, env, want))
			}
			return env, want
		}
		live := &appsv1.Deployment{}
		t.Run("Dropped"+form, func(t *testing.T) {
			env, want := setUp(t)
			clearManagedFields(t, env, live)
			delete(want.Labels, "example.com/dropped")
			want.Spec.Template.Spec.Containers[0].Env = nil
			crash(t, env, want)
			env.Live(t, live)
			require.Contains(t, live.Labels, "example.com/dropped")

			change, err := env.Diff(t, asForm(t, env, want))
			require.NoError(t, err)
			require.Equal(t, forecast.Apply, change.Action)
			require.Len(t, change.Differences, 2, "%v", change.Differences)
			env.Expect(t, asForm(t, env, want), apply.Applied, "PATCH deployments", "GET deployments", "PATCH deployments")
			env.Live(t, live)
			require.NotContains(t, live.Labels, "example.com/dropped")
			require.Empty(t, live.Spec.Template.Spec.Containers[0].Env)
			env.Settled(t, asForm(t, env, want))
		})
		t.Run("Repaired"+form, func(t *testing.T) {
			env, want := setUp(t)
			clearManagedFields(t, env, live)
			ownedtest.ByHand(t, env, live, func(d *appsv1.Deployment) {
				d.Labels["example.com/theirs"] = "x"
				d.Spec.Template.Spec.Containers[0].Image = "evil"
			})
			crash(t, env, want)
			env.Expect(t, asForm(t, env, want), apply.Applied, "PATCH deployments", "GET deployments", "PATCH deployments")
			env.Live(t, live)
			require.Equal(t, "x", live.Labels["example.com/theirs"], "nothing was dropped")
			require.Contains(t, live.Labels, "example.com/dropped")
			delete(want.Labels, "example.com/dropped")
			env.Expect(t, asForm(t, env, want), apply.Applied, "PATCH deployments")
			env.Live(t, live)
			require.NotContains(t, live.Labels, "example.com/dropped")
			require.Equal(t, "x", live.Labels["example.com/theirs"])
		})
		t.Run("Adopted"+form, func(t *testing.T) {
			env := newServer(t)
			want := env.Deployment()
			theirs := want.DeepCopy()
			theirs.Namespace = env.Namespace
			theirs.Labels["example.com/theirs"] = "x"
			require.NoError(t, env.Other.Create(t.Context(), theirs))
			clearManagedFields(t, env, live)
			crash(t, env, want, func(o *owned.Options) { o.Adopt = true })
			env.Expect(t, asForm(t, env, want), apply.Applied, "PATCH deployments", "GET deployments", "PATCH deployments")
			env.Live(t, live)
			require.Equal(t, "x", live.Labels["example.com/theirs"], "it was not ours before")
			env.Settled(t, asForm(t, env, want))
		})
	}
}

// TestReclaimAfterTheStatusWasApplied clears the managed fields, and lets a controller apply the status next. After that, the API server
// adds no managed fields entry for the fields that were ours.
func TestReclaimAfterTheStatusWasApplied(t *testing.T) {
	for _, start := range []string{"AfterPost", "AfterApply"} {
		t.Run(start, func(t *testing.T) {
			env := newServer(t)
			want := env.Deployment()
			want.Spec.Replicas = nil
			want.Labels["example.com/dropped"] = "x"
			env.MustApply(t, want)
			if start == "AfterApply" {
				want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
				env.MustApply(t, want)
			}
			live := &appsv1.Deployment{}
			clearManagedFields(t, env, live)
			status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"observedGeneration": int64(1)}}}
			status.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
			status.SetNamespace(env.Namespace)
			status.SetName("web")
			require.NoError(t, env.Other.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("status")))
			ownedtest.ByHand(t, env, live, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"example.com/theirs": "x"}
			})
			env.Settled(t, want)

			want = want.DeepCopy()
			delete(want.Labels, "example.com/dropped")
			want.Spec.Template.Spec.Containers[0].Env = nil
			change, err := env.Diff(t, want.DeepCopy())
			require.NoError(t, err)
			require.Len(t, change.Differences, 2, "%v", change.Differences)
			env.MustApply(t, want)
			env.Live(t, live)
			require.NotContains(t, live.Labels, "example.com/dropped")
			require.Empty(t, live.Spec.Template.Spec.Containers[0].Env)
			require.Equal(t, "x", live.Spec.Template.Annotations["example.com/theirs"], "it is known whose it is")
			env.Settled(t, want)
			want.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
			env.Expect(t, want, apply.Applied, "PATCH deployments")
		})
	}
}
