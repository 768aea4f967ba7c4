package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// No controllers run: a PodDisruptionBudget is reconciled by the test alone.
var controlPlane = controlplanetest.Shared()

type budget = policyv1.PodDisruptionBudget

const (
	eventually = 20 * time.Second
	often      = 10 * time.Millisecond
)

// world is a real API server and a manager on it, whose requests are counted.
type world struct {
	client    client.Client // somebody else's
	mgr       ctrl.Manager
	count     requests.Count
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, rest.CopyConfig)
}

// newWorldWith lets the manager have another configuration.
func newWorldWith(t *testing.T, change func(*rest.Config) *rest.Config) *world {
	t.Helper()
	cp := controlPlane(t)
	w := &world{namespace: controlplanetest.Namespace(t, cp)}
	var err error
	w.client, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	w.mgr, err = ctrl.NewManager(w.count.Wrap(change(cp.Config())), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	return w
}

// run starts the manager, and stops it before the test ends.
func (w *world) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	require.True(t, w.mgr.GetCache().WaitForCacheSync(ctx))
}

func (w *world) create(t *testing.T, name string) *budget {
	t.Helper()
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	require.NoError(t, w.client.Create(t.Context(), b))
	return b
}

func (w *world) waitFor(t *testing.T, b *budget, what string, is func(*budget) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil && is(b)
	}, eventually, often, what)
}

func settings(b *budget) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-settings"},
		Data:       map[string]string{"for": b.Name},
	}
}

func TestControllerFromStepsAlone(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings)), reconcile.Reporting("Configured")),
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

// A name that somebody else has is free when that object goes, and nothing of it leads to us.
func TestBlockedNameIsTakenWhenItIsFree(t *testing.T) {
	w := newWorld(t)
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
	for range 10 { // the backoff is at a minute now: it is not what heals this
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		require.NoError(t, err)
	}
	require.NoError(t, w.client.Delete(t.Context(), theirs))
	w.waitFor(t, b, "ready", func(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Ready") })
}

// Between our read and our write, somebody else writes a condition.
func TestOtherWritersConditionSurvives(t *testing.T) {
	w := newWorld(t)
	passes := 0
	interfere := func(ctx context.Context, _ client.Client, b *budget) error {
		if passes++; passes > 1 {
			return nil
		}
		theirs := &budget{}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(b), theirs); err != nil {
			return err
		}
		theirs.Status.CurrentHealthy = 5
		theirs.Status.Conditions = []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "Theirs", LastTransitionTime: metav1.Now()}}
		return w.client.Status().Update(ctx, theirs)
	}
	require.NoError(t, reconcile.For[*budget](w.mgr, reconcile.Named("interfere", reconcile.Func(interfere))).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "both conditions", func(b *budget) bool {
		return conditions.IsTrue(b.Status.Conditions, "Theirs") && conditions.IsTrue(b.Status.Conditions, "Ready")
	})
	require.EqualValues(t, 5, b.Status.CurrentHealthy)
	require.Equal(t, []string{"PATCH poddisruptionbudgets/status", "PATCH poddisruptionbudgets/status"}, w.count.Sent(),
		"one that lost, and one that did not")
}

func TestMappedWatchBringsAPass(t *testing.T) {
	w := newWorld(t)
	byLabel := func(_ context.Context, _ client.Reader, cm *corev1.ConfigMap) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: cm.GetNamespace(), Name: cm.GetLabels()["budget"]}}}
	}
	count := func(ctx context.Context, c client.Client, b *budget) error {
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(b.Namespace), client.MatchingLabels{"budget": b.Name}); err != nil {
			return err
		}
		b.Status.CurrentHealthy = int32(len(list.Items))
		return nil
	}
	require.NoError(t, reconcile.For[*budget](w.mgr,
		reconcile.Named("count", reconcile.Func(count), reconcile.Watching(&corev1.ConfigMap{}, byLabel)),
	).Complete())
	w.run(t)
	b := w.create(t, "a")
	w.waitFor(t, b, "none", func(b *budget) bool { return b.Status.ObservedGeneration == 1 })
	require.NoError(t, w.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "one", Labels: map[string]string{"budget": "a"},
	}}))
	w.waitFor(t, b, "one", func(b *budget) bool { return b.Status.CurrentHealthy == 1 })
}

// recorder notes what a reconciler returns.
type recorder struct {
	ctrlreconcile.Reconciler
	errs chan error
}

func (r *recorder) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, req)
	r.errs <- err
	return result, err
}

func TestHandMadeBuilder(t *testing.T) {
	tests := map[string]struct {
		reason string
		setup  bool
		says   string
	}{
		"watches set up": {reason: "a builder of one's own works", setup: true},
		"watches forgotten": {
			reason: "one sentence, in the first pass, says what to call",
			says:   "call SetupWithBuilder before the builder's Complete",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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
