package reconciletest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// runPass runs one pass, with some objects on the server.
func runPass(t *testing.T, pass func(ctx context.Context, p *reconciletest.Process) error, objects ...client.Object) *reconciletest.Env {
	t.Helper()
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
			return ctrl.Result{}, pass(ctx, p)
		}
	})
	s.Objects = slices.Concat(objects, []client.Object{shop()})
	var left *reconciletest.Env
	reconciletest.Run(t, s, func(_ *testing.T, env *reconciletest.Env) { left = env })
	return left
}

func TestClientReads(t *testing.T) {
	var cached, listed corev1.ConfigMap
	var untyped unstructured.Unstructured
	var indexed corev1.ConfigMapList
	runPass(t, func(ctx context.Context, p *reconciletest.Process) error {
		c := p.Client()
		made := config("new")
		if err := c.Create(ctx, made); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if made.UID == "" {
			return nil // this is the second pass
		}
		assert.Error(t, c.Get(ctx, client.ObjectKeyFromObject(made), &cached), "the cache does not show it yet")
		require.NoError(t, p.APIReader().Get(ctx, client.ObjectKeyFromObject(made), &listed), "the server has it")
		untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(made), &untyped), "untyped objects are not cached")

		assert.ErrorContains(t, c.List(ctx, &indexed, client.MatchingFields{"colour": "red"}), "Index with name field:colour does not exist")
		require.NoError(t, p.FieldIndexer().IndexField(ctx, config(""), "colour", func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["colour"]}
		}))
		require.NoError(t, c.List(ctx, &indexed, client.MatchingFields{"colour": "red"}))
		return nil
	}, source(), config("other"))
	require.Len(t, indexed.Items, 1)
	assert.Equal(t, "source", indexed.Items[0].Name)
}

// The manager's cache holds only what its options select, as a real one does.
func TestManagerRestrictsItsCache(t *testing.T) {
	ours, theirs := config("ours"), config("theirs")
	ours.Labels = map[string]string{label: "yes"}
	var events []string
	s := reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Objects: []client.Object{theirs},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager(cache.Options{ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(ours.Labels)},
			}})
			record := func(_ context.Context, obj client.Object) []ctrl.Request {
				events = append(events, fmt.Sprintf("%s %T", obj.GetName(), obj))
				return nil
			}
			return ctrl.NewControllerManagedBy(mgr).For(&Shop{}).
				Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(record)).
				WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(record)).
				Complete(ctrlreconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
					var all corev1.ConfigMapList
					require.NoError(t, mgr.GetClient().List(ctx, &all))
					for _, item := range all.Items {
						assert.Equal(t, "ours", item.Name)
					}
					assert.Error(t, mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(theirs), config("")))
					assert.NoError(t, mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(theirs), config("")), "it exists")
					return ctrl.Result{}, nil
				}))
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(ours), reconciletest.Create(shop()),
			reconciletest.Change(theirs, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} }),
			reconciletest.Change(ours, func(m *corev1.ConfigMap) { m.Labels = nil }),
		},
	}
	reconciletest.Run(t, s, func(*testing.T, *reconciletest.Env) {})
	one, other := "ours *v1.ConfigMap", "ours *v1.PartialObjectMetadata" // one watch of typed objects, and one of metadata
	assert.Equal(t, []string{one, other, one, other}, events, "it is added and deleted; there are no events of the other ConfigMap")
}

// Requests of the operator outside of its passes are recorded, and faults happen there too.
func TestRunnable(t *testing.T) {
	s := reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"}, Objects: []client.Object{shop()},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager()
			c := mgr.GetClient()
			if err := ctrl.NewControllerManagedBy(mgr).Named("shop").For(&Shop{}).Complete(&shopReconciler{c, idle(p)}); err != nil {
				return err
			}
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				for {
					select {
					case <-ctx.Done():
						return nil
					case <-time.After(time.Minute):
					}
					s := shop()
					if err := c.Get(ctx, client.ObjectKeyFromObject(s), s); err == nil {
						_ = open(ctx, c, s, "Swept") // retried a minute later
					}
				}
			}))
		},
		Actions: []reconciletest.Action{reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }), reconciletest.Wait(5 * time.Minute)},
	}
	report := reconciletest.ExploreQuietly(t, s)
	assert.Empty(t, report.Failures, report.String())
	assert.NotZero(t, report.Survived[reconciletest.Faults.CrashBefore])
}

// A process that has died may retry for ever. The run still ends.
func TestDeadProcessRetriesForEver(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			for client.IgnoreAlreadyExists(c.Create(ctx, owned(c, s, s.Name, nil))) != nil {
				continue
			}
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()))
	reconciletest.Explore(t, s)
}

// peer is an HTTP server outside of the cluster.
type peer struct{ items []string }

func (p *peer) State() any { return p.items }

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		p.items = append(p.items, r.URL.Path)
	}
	_, _ = fmt.Fprint(w, len(p.items))
}

func TestRoundTripper(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		web := &http.Client{Transport: p.RoundTripper(p.External().(*peer))}
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.Status.Phase != "" {
				return ctrl.Result{}, nil
			}
			answer, err := web.Post("http://peer/items/"+s.Name, "text/plain", nil) //nolint:noctx // the shortest way to send one
			if err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, open(ctx, c, s, answer.Status)
		}
	}, reconciletest.Create(shop()))
	s.External = func() reconciletest.External { return &peer{} }
	report := reconciletest.ExploreQuietly(t, s)
	require.NotEmpty(t, report.Failures)
	assert.Contains(t, report.String(), "crash after: effect POST /items/web #1")
	assert.Contains(t, report.String(), "runs: external is longer here\n")
}
