package reconcile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// Deployments and their status belong to other controllers: a step only annotates them.
func TestPatchAnnotationsOfForeignDeployments(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*appsv1.Deployment](w.mgr, reconcile.Named("note", reconcile.Func(
		func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 9 // a change that exists only in memory
			_, err := reconcile.PatchAnnotations(ctx, c, d, map[string]string{"example.com/seen": d.Labels["app.kubernetes.io/name"]})
			return err
		}))).WithoutStatus().Complete())
	w.run(t)
	one := w.deployment(t, "one")
	annotated := func(d *appsv1.Deployment) func() bool {
		return func() bool {
			return w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil && d.Annotations["example.com/seen"] != ""
		}
	}
	require.Eventually(t, annotated(one), eventually, often)
	two := w.deployment(t, "two") // when the second Deployment is annotated, the passes that the first annotation has triggered are over
	require.Eventually(t, annotated(two), eventually, often)
	require.Equal(t, []string{"PATCH deployments", "PATCH deployments"}, w.count.Sent(), "one each, and none for the status")
	require.Zero(t, one.Status.Replicas)
}

// A pass annotates its own object, makes a checkpoint and writes the status. These writes do not conflict with each
// other.
func TestWritesOfOnePass(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("account", cleaning{reconcile.Func(func(ctx context.Context, c client.Client, b *budget) error {
			b.Status.ExpectedPods = 7
			if err := reconcile.Checkpoint(ctx); err != nil {
				return err
			}
			stored := &budget{}
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(b), stored); err != nil {
				return err
			}
			if stored.Status.ExpectedPods != 7 || len(stored.Finalizers) == 0 {
				return errors.New("a crash here would leave an account that nobody knows")
			}
			_, err := reconcile.PatchAnnotations(ctx, c, b, map[string]string{"example.com/account": "made"})
			return err
		}), step(nil).Reconcile}).Finalizer("example.com/account"),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "ready", isReady)
	require.Equal(t, []string{
		"PATCH poddisruptionbudgets", "PATCH poddisruptionbudgets/status", "PATCH poddisruptionbudgets", "PATCH poddisruptionbudgets/status",
	}, w.count.Sent(), "finalizer, checkpoint, annotation, status: none is repeated")
	require.Equal(t, "made", b.Annotations["example.com/account"])
}

// An object with the same name and another UID is another object, so it is not patched.
func TestPatchAnnotationsOfRecreatedObject(t *testing.T) {
	w := newEnv(t)
	d := w.deployment(t, "web")
	require.NoError(t, w.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.isGone(t, d.DeepCopy())
	namesake := w.deployment(t, "web")
	_, err := reconcile.PatchAnnotations(t.Context(), w.client, d, map[string]string{"example.com/seen": "x"})
	require.Error(t, err)
	b := w.create(t, "a")
	_, _ = reconcile.New(w.client, reconcile.Named("one", step(err))).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	require.Empty(t, b.Status.Conditions, "a race, to be retried quietly, although the API server calls it invalid: %v", err)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(namesake), namesake))
	require.Empty(t, namesake.Annotations["example.com/seen"])
}
