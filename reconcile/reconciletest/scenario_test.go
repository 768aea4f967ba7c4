package reconciletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func idle(*reconciletest.Process) shopFunc {
	return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
}

func TestObjectsKeepTheirStatus(t *testing.T) {
	s := of(idle)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	s.Objects = []client.Object{shop(func(s *Shop) { s.Status.Phase = "Open" }), node}
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		is := shop()
		require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(is), is))
		assert.Equal(t, "Open", is.Status.Phase)
		require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		assert.Equal(t, "v1.36.3", node.Status.NodeInfo.KubeletVersion)
	})
}

// What happens outside is found by asking from time to time.
func TestUserActsOutside(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: 10 * time.Minute}, accountsOf(p).keep(ctx, s.Name)
		}
	})
	s.Actions = []reconciletest.Action{
		reconciletest.Create(shop()),
		reconciletest.DoExternal("drop the account", func(a *accounts) error { a.All = nil; return nil }),
		reconciletest.Wait(11 * time.Minute),
	}
	s.External, s.Horizon = newAccounts, 5*time.Minute
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		assert.Equal(t, []string{"web"}, w.External.State())
	})

	s.Actions[1] = reconciletest.DoExternal("drop the account", func(*vault) error { return nil })
	assert.Contains(t, reconciletest.ExploreQuietly(t, s).String(), "it is for an External of type *reconciletest_test.vault, and the scenario has one of type *reconciletest_test.accounts")
}

// What the operator does by itself while time passes is seen, and it is started again when it dies.
func TestWorkOutsideOfPasses(t *testing.T) {
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
						_ = open(ctx, c, s, "Swept") // at the next minute again
					}
				}
			}))
		},
		Actions: []reconciletest.Action{reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }), reconciletest.Wait(5 * time.Minute)},
	}
	report := reconciletest.ExploreQuietly(t, s)
	assert.Empty(t, report.Failures, report.String())
	assert.NotZero(t, report.Survived[reconciletest.CrashBefore])
}

// Delays are followed as far as the scenario says, also where they bring nothing for long.
func TestWaitingByDelays(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if time.Since(s.CreationTimestamp.Time) < time.Minute {
				return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, reconciletest.Create(shop()))
	s.Horizon = 2 * time.Minute
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		is := shop()
		require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(is), is))
		assert.Equal(t, "Open", is.Status.Phase)
	})
	reconciletest.Explore(t, s)
}

func TestSecretMadeInThePass(t *testing.T) {
	says := ""
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, StringData: map[string]string{"password": "correct horse", "username": "postgres"}}
			if err := client.IgnoreAlreadyExists(c.Create(ctx, made)); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, says))
		}
	}, reconciletest.Create(shop()))
	for text, leaks := range map[string]bool{"it is correct horse": true, "postgres:16": false} {
		says = text
		report := reconciletest.ExploreQuietly(t, s)
		assert.Equal(t, leaks, len(report.Failures) > 0, report.String())
		if leaks {
			assert.Contains(t, report.String(), `the value of key "password" in Secret web appears in status.phase`)
		}
	}
}

func TestAnotherVersionOfAKind(t *testing.T) {
	s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		other := &unstructured.Unstructured{}
		other.SetGroupVersionKind(shopVersion.WithKind("Shop"))
		b.For(other)
		return &shopReconciler{p.Client(), idle(p)}
	}, reconciletest.Create(shop()))
	assert.Empty(t, reconciletest.ExploreQuietly(t, s).Failures, "untyped is no other version")
}
