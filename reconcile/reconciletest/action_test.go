//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The clock moves on as long as a Wait says, and the operator does what becomes due in this time.
func TestWait(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			due := s.CreationTimestamp.Add(24 * time.Hour)
			if left := time.Until(due); left > 0 {
				return ctrl.Result{RequeueAfter: left}, nil
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	}, reconciletest.Create(shop()))
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		env.RequestLog.AssertWrites(t)
		env.Do(reconciletest.Wait(23 * time.Hour))
		env.RequestLog.AssertWrites(t)
		env.Do(reconciletest.Wait(2 * time.Hour))
		env.RequestLog.AssertWrites(t, "update Shop/status default/web")
	})
	s.Actions = append(s.Actions, reconciletest.Wait(25*time.Hour))
	reconciletest.Explore(t, s)
}

// The operator gets no event for an external action. It notices the change when it reads again.
func TestDoExternal(t *testing.T) {
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
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		assert.Equal(t, []string{"web"}, env.External.State())
	})

	s.Actions[1] = reconciletest.DoExternal("drop the account", func(*vault) error { return nil })
	assert.Contains(t, reconciletest.ExploreQuietly(t, s).String(), "it is for an External of type *reconciletest_test.vault, and the scenario has one of type *reconciletest_test.accounts")
}

// An action may need an object that the operator creates. It happens after the creation, also in runs with faults.
func TestActionNeedsWhatTheOperatorCreates(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			for _, name := range []string{"a", "b"} {
				if err := ensure(ctx, c, s, owned(c, s, name, nil)); client.IgnoreAlreadyExists(err) != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()), reconciletest.Delete(config("b")))
	reconciletest.Explore(t, with(s, reconciletest.Options{Pairs: 1000}))
}

// An object without a Go type is changed like any other.
func TestChangeUnstructured(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(shopVersion.WithKind("Shop"))
	u.SetNamespace("default")
	u.SetName("web")
	s := of(idle, reconciletest.Create(shop()), reconciletest.Change(u, func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"motto": "changed"}
	}))
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		assert.Equal(t, "changed", get(t, env, shop()).Spec.Motto)
	})
}
