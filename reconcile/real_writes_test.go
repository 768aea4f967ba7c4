package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
)

func (w *world) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := ownedresources.NewDeployment(&budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, nil,
		corev1.Container{Name: "web", Image: "nginx:1.27"})
	require.NoError(t, w.client.Create(t.Context(), d))
	return d
}

// Deployments belong to others, and so does their status: a step annotates them and no more.
func TestForeignDeploymentsAreAnnotatedAndNothingElse(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, reconcile.For[*appsv1.Deployment](w.mgr, reconcile.Named("note", reconcile.Func(
		func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 9 // in memory
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
	two := w.deployment(t, "two") // the passes that one's own annotation brings are over when this is done
	require.Eventually(t, annotated(two), eventually, often)
	require.Equal(t, []string{"PATCH deployments", "PATCH deployments"}, w.count.Sent(), "one each, and none for the status")
	require.Zero(t, one.Status.Replicas)
}

// Annotating the pass's own object, a checkpoint and the status, all in one pass that no write of its own disturbs.
func TestOwnAnnotationCheckpointAndStatusInOnePass(t *testing.T) {
	w := newWorld(t)
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
		}), step(nil)}, reconcile.Finalizer("example.com/account")),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "ready", isReady)
	require.Equal(t, []string{
		"PATCH poddisruptionbudgets", "PATCH poddisruptionbudgets/status", "PATCH poddisruptionbudgets", "PATCH poddisruptionbudgets/status",
	}, w.count.Sent(), "finalizer, checkpoint, annotation, status: none is repeated")
	require.Equal(t, "made", b.Annotations["example.com/account"])
}

// An object with the same name and another UID is not what was read.
func TestNamesakeIsNotWritten(t *testing.T) {
	w := newWorld(t)
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

// The object is deleted in the middle of a pass, and another one of its name is there when the status is written.
func TestStatusOfANamesakeIsNotWritten(t *testing.T) {
	w := newWorld(t)
	b := w.create(t, "a")
	namesake := &budget{}
	r := reconcile.New(w.client, reconcile.Named("one", reconcile.Func(func(ctx context.Context, _ client.Client, b *budget) error {
		if err := w.client.Delete(ctx, b.DeepCopy()); err != nil {
			return err
		}
		namesake = w.create(t, "a")
		b.Status.ExpectedPods = 7
		return nil
	})))
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(b), namesake))
	require.Zero(t, namesake.Status)
}

// Many objects, workers, Secrets and pauses at once, under the race detector; the canary is in no event, condition or metric.
func TestManyAtOnce(t *testing.T) {
	const canary = "canary-5b1f"
	w := newWorld(t)
	var failing atomic.Bool
	failing.Store(true)
	var mu sync.Mutex
	made := map[string]bool{}
	login := func(ctx context.Context, c client.Client, b *budget) error {
		value, _, err := reconcile.ReadSecret(ctx, c, b.Namespace, corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "shared"}, Key: "value"})
		if err != nil {
			return err
		}
		b.Status.ExpectedPods = 1
		if err := reconcile.Checkpoint(ctx); err != nil {
			return err
		}
		mu.Lock()
		made[b.Name] = true
		mu.Unlock()
		if failing.Load() {
			return fmt.Errorf("login with %v, %x and %d refused", value, value, value)
		}
		return nil
	}
	drop := func(_ context.Context, _ client.Client, b *budget) error {
		mu.Lock()
		defer mu.Unlock()
		delete(made, b.Name)
		return nil
	}
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("login", cleaning{reconcile.Func(login), drop}, reconcile.Finalizer("example.com/login"), reconcile.Reporting("LoggedIn"),
			reconcile.Referencing(&corev1.Secret{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "shared"}} })),
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))),
	).WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete())
	w.run(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"}, StringData: map[string]string{"value": canary}}
	require.NoError(t, w.client.Create(t.Context(), secret))
	var all []*budget
	for i := range 12 {
		all = append(all, w.create(t, fmt.Sprint("b", i)))
	}
	for _, b := range all {
		w.waitFor(t, b, "fails", func(b *budget) bool { return len(b.Status.Conditions) > 0 && b.Status.Conditions[0].Reason == "Failed" })
		require.Equal(t, "login with (hidden), (hidden) and (hidden) refused", b.Status.Conditions[0].Message)
	}
	failing.Store(false)
	secret.StringData = map[string]string{"value": canary + "-2"}
	require.NoError(t, w.client.Update(t.Context(), secret))
	for _, b := range all {
		w.waitFor(t, b, "ready", isReady)
	}
	require.Eventually(t, func() bool { // the recorder sends in the background
		var list eventsv1.EventList
		require.NoError(t, w.client.List(t.Context(), &list, client.InNamespace(w.namespace)))
		count := map[string]int{}
		for _, e := range list.Items {
			require.NotContains(t, e.Note, "canary")
			count[e.Type+" "+e.Reason+" "+e.Action]++
		}
		return count["Warning Failed Login"] == len(all) && count["Normal Ready Reconcile"] == len(all)
	}, eventually, often, "one of each for each object")

	require.Contains(t, metricsText(t), w.namespace)
	require.NotContains(t, metricsText(t), "canary")
	for _, b := range all {
		require.NoError(t, w.client.Delete(t.Context(), b))
	}
	for _, b := range all {
		w.isGone(t, b)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, made)
	require.Eventually(t, func() bool { return !strings.Contains(metricsText(t), w.namespace) }, eventually, often, "no series is left of them")
}

// metricsText gives the conditions' series.
func metricsText(t *testing.T) string {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "opblocks_") {
			b.WriteString(f.String())
		}
	}
	return b.String()
}

// Predicates limit the events of the object itself.
func TestWithPredicates(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, reconcile.For[*budget](w.mgr, reconcile.Named("one", step(nil))).
		WithPredicates(predicates.Label("served", "yes")).Complete())
	w.run(t)
	other := w.create(t, "a")
	ours := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "b", Labels: map[string]string{"served": "yes"}}}
	require.NoError(t, w.client.Create(t.Context(), ours))
	w.waitFor(t, ours, "ready", isReady)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	require.Empty(t, other.Status.Conditions, "its event came first")
}
