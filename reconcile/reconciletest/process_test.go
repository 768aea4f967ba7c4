package reconciletest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// playing runs one pass, in a world with some objects.
func playing(t *testing.T, pass func(ctx context.Context, p *reconciletest.Process) error, objects ...client.Object) *reconciletest.Env {
	t.Helper()
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
			return ctrl.Result{}, pass(ctx, p)
		}
	})
	s.Objects = slices.Concat(objects, []client.Object{shop()})
	var world *reconciletest.Env
	reconciletest.Run(t, s, func(_ *testing.T, w *reconciletest.Env) { world = w })
	return world
}

func TestReads(t *testing.T) {
	var cached, listed corev1.ConfigMap
	var untyped unstructured.Unstructured
	var indexed corev1.ConfigMapList
	playing(t, func(ctx context.Context, p *reconciletest.Process) error {
		c := p.Client()
		made := config("new")
		if err := c.Create(ctx, made); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if made.UID == "" {
			return nil // the second pass
		}
		assert.Error(t, c.Get(ctx, client.ObjectKeyFromObject(made), &cached), "the cache has not heard of it")
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

// The manager's cache is restricted as a real one.
func TestRestrictedCache(t *testing.T) {
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
	one, other := "ours *v1.ConfigMap", "ours *v1.PartialObjectMetadata" // a watch each
	assert.Equal(t, []string{one, other, one, other}, events, "it comes, and it leaves; the others' are not heard of")
}

func TestSecretsInEvents(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Data:       map[string][]byte{"password": []byte("correct horse")},
	}
	tell := map[string]func(p *reconciletest.Process, ctx context.Context, text string){
		"event": func(p *reconciletest.Process, _ context.Context, text string) {
			p.EventRecorder().Eventf(shop(), nil, "Normal", "Told", "Tell", "it is %s", text)
		},
		"legacy event": func(p *reconciletest.Process, _ context.Context, text string) {
			p.LegacyEventRecorder().Event(shop(), "Normal", "Told", text)
		},
		"log": func(_ *reconciletest.Process, ctx context.Context, text string) {
			ctrl.LoggerFrom(ctx).Info("Connected", "with", text)
		},
		"error": func(_ *reconciletest.Process, ctx context.Context, text string) {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("refused: %s", text), "Cannot connect")
		},
	}
	for name, tell := range tell {
		t.Run(name, func(t *testing.T) {
			scenario := func(text string) reconciletest.Scenario {
				s := of(func(p *reconciletest.Process) shopFunc {
					return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
						tell(p, ctx, text)
						return ctrl.Result{}, nil
					}
				}, reconciletest.Create(shop()))
				s.Objects = []client.Object{secret}
				return s
			}
			assert.Empty(t, reconciletest.ExploreQuietly(t, scenario("as web")).Failures)
			assert.Contains(t, reconciletest.ExploreQuietly(t, scenario("as web with correct horse")).String(), `the value of key "password" in Secret web`)
		})
	}
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

func TestHTTP(t *testing.T) {
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
	assert.Contains(t, report.String(), `external: want ["/items/web"], got ["/items/web","/items/web"]`)
}

// Whoever makes a clientset is told why it cannot work.
func TestClientset(t *testing.T) {
	var err error
	playing(t, func(ctx context.Context, p *reconciletest.Process) error {
		set := kubernetes.NewForConfigOrDie(p.Manager().GetConfig())
		_, err = set.CoreV1().ConfigMaps("default").Get(ctx, "web", metav1.GetOptions{})
		return nil
	})
	assert.ErrorContains(t, err, "reconciletest's server is not reached by HTTP: use the manager's client")
}
