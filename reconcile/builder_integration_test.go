package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/secrets"
)

func TestController(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))).Reporting("Configured"),
	).Complete())
	w.run(t)
	ready := func(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Ready") }

	b := w.create(t, "a")
	w.waitFor(t, b, "ready", ready)
	require.Equal(t, []string{"POST configmaps", "PATCH poddisruptionbudgets/status"}, w.count.Sent(), "one request a child, one for the status")

	child := settings(b)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child))
	uid := child.UID
	require.NoError(t, w.client.Delete(t.Context(), child))
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child) == nil && child.UID != uid
	}, eventually, often, "what is deleted comes back by its event")
	require.Equal(t, []string{"POST configmaps"}, w.count.Sent(), "the status did not change")

	child.Data["for"] = "something else"
	require.NoError(t, w.client.Update(t.Context(), child))
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(child), child) == nil && child.Data["for"] == "a"
	}, eventually, often, "drift is repaired by its event")
	require.Equal(t, []string{"GET configmaps", "PATCH configmaps", "PATCH configmaps"}, w.count.Sent(), "the first apply takes over the fields of the POST")
}

// An object of somebody else has the name of a child, and no reference to the owner. When that object is deleted, the
// owner is reconciled, and the child is created.
func TestBlockedChildIsCreatedLater(t *testing.T) {
	w := newEnv(t)
	r := reconcile.New(w.mgr.GetClient(), reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))))
	builder := ctrl.NewControllerManagedBy(w.mgr).For(&budget{})
	require.NoError(t, r.SetupWithBuilder(w.mgr, builder))
	require.NoError(t, builder.Complete(r))
	w.run(t)
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
	theirs := settings(b)
	require.NoError(t, w.client.Create(t.Context(), theirs))
	b = w.create(t, "a")
	w.waitFor(t, b, "refused", func(b *budget) bool {
		ready, ok := conditions.Get(b.Status.Conditions, "Ready")
		return ok && ready.Reason == "OwnedByAnother"
	})
	for range 10 { // the backoff grows to a minute, so the event of the deletion, and not the backoff, triggers the reconcile
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		require.NoError(t, err)
	}
	require.NoError(t, w.client.Delete(t.Context(), theirs))
	w.waitFor(t, b, "ready", func(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Ready") })
}

// recorder is a reconciler that sends the errors of another reconciler to a channel.
type recorder struct {
	ctrlreconcile.Reconciler
	errs chan error
}

func (r *recorder) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, req)
	r.errs <- err
	return result, err
}

func TestSetupWithBuilder(t *testing.T) {
	tests := map[string]struct {
		reason string
		setup  bool
		says   string
	}{
		"WatchesSetUp": {reason: "the reconciler works in a builder that For did not make", setup: true},
		"WatchesForgotten": {
			reason: "the error of the first pass names the missing call",
			says:   "call SetupWithBuilder before the builder's Complete",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			r := reconcile.New(w.mgr.GetClient(), reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))))
			b := ctrl.NewControllerManagedBy(w.mgr).For(&budget{}).Named(strings.ReplaceAll(name, " ", "-"))
			if tc.setup {
				require.NoError(t, r.SetupWithBuilder(w.mgr, b))
			}
			rec := &recorder{Reconciler: r, errs: make(chan error, 100)}
			require.NoError(t, b.Complete(rec))
			w.run(t)
			w.create(t, "a")
			select {
			case err := <-rec.errs:
				if tc.says == "" {
					require.NoError(t, err, tc.reason)
				} else {
					require.ErrorContains(t, err, tc.says, tc.reason)
				}
			case <-time.After(eventually):
				t.Fatal("no pass")
			}
		})
	}
}

// WithPredicates limits which events of the object itself trigger a reconcile.
func TestWithPredicates(t *testing.T) {
	w := newEnv(t)
	require.NoError(t, reconcile.For[*budget](w.mgr, reconcile.Named("one", step(nil))).
		WithPredicates(predicates.Label("served").Equals("yes")).Complete())
	w.run(t)
	other := w.create(t, "a")
	ours := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "b", Labels: map[string]string{"served": "yes"}}}
	require.NoError(t, w.client.Create(t.Context(), ours))
	w.waitFor(t, ours, "ready", isReady)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	require.Empty(t, other.Status.Conditions, "its event came first")
}

// This test is for the race detector: many objects, workers, Secrets and pauses at the same time. The value of the Secret
// must not appear in an event, a condition or a metric.
func TestConcurrentReconciles(t *testing.T) {
	const canary = "canary-5b1f"
	w := newEnv(t)
	var failing atomic.Bool
	failing.Store(true)
	var mu sync.Mutex
	made := map[string]bool{}
	login := func(ctx context.Context, c client.Client, b *budget) error {
		value, _, err := secrets.Read(ctx, c, b.Namespace, corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "shared"}, Key: "value"})
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
		reconcile.Named("login", cleaning{reconcile.Func(login), drop}).Finalizer("example.com/login").Reporting("LoggedIn").
			Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return []types.NamespacedName{{Name: "shared"}} }),
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

// metricsText returns the metrics of this library as text.
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
