//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// losesErrors is an operator that creates a ConfigMap with the Shop's motto, and updates it. It drops the error of the creation. It drops the
// error of an update only if losesLater is set.
func losesErrors(losesLater bool, actions ...reconciletest.Action) reconciletest.Scenario {
	return of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			made, data := config("made"), map[string]string{"motto": s.Spec.Motto}
			switch err := c.Get(ctx, client.ObjectKeyFromObject(made), made); {
			case isAbsent(err):
				_ = c.Create(ctx, owned(c, s, "made", data)) // the mistake: only faults at the creation show it
				return ctrl.Result{}, nil
			case err != nil || made.Data["motto"] == s.Spec.Motto:
				return ctrl.Result{}, err
			}
			made.Data = data
			if err := c.Update(ctx, made); err != nil && !losesLater {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, nil
		}
	}, actions...)
}

func TestActionWithoutFaults(t *testing.T) {
	create, change := reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "open" })
	tests := map[string]struct {
		reason     string
		losesLater bool
		actions    []reconciletest.Action
		fails      bool
		spares     bool
	}{
		"All":         {reason: "a fault at the creation is not survived", actions: []reconciletest.Action{create, change}, fails: true},
		"Creation":    {reason: "another exploration tries the creation", actions: []reconciletest.Action{create.WithoutFaults(), change}, spares: true},
		"LaterFaults": {reason: "a fault at the change is tried", losesLater: true, actions: []reconciletest.Action{create.WithoutFaults(), change}, fails: true, spares: true},
		"Both":        {reason: "nothing is tried", losesLater: true, actions: []reconciletest.Action{create.WithoutFaults(), change.WithoutFaults()}, spares: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, losesErrors(tc.losesLater, tc.actions...))
			assert.Equal(t, tc.fails, len(report.Failures) > 0, "%s: %s", tc.reason, report)
			assert.Equal(t, tc.spares, report.Spared > 0, tc.reason)
			if !tc.fails && tc.spares {
				assert.Contains(t, report.String(), "not tried, after actions with WithoutFaults", tc.reason)
			}
		})
	}
}

// Each fault is either tried or counted as left out. A fault that needs the next action, such as a crash with downtime, belongs to the next
// action.
func TestActionWithoutFaultsCounts(t *testing.T) {
	explore := func(create reconciletest.Action) *reconciletest.Report {
		s := migrates()
		s.Actions = []reconciletest.Action{create, reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "open" })}
		return reconciletest.ExploreQuietly(t, s)
	}
	all, some := explore(reconciletest.Create(shop())), explore(reconciletest.Create(shop()).WithoutFaults())
	assert.Empty(t, some.Failures)
	assert.Equal(t, all.Singles+all.Repeated, some.Singles+some.Repeated+some.Spared)
	assert.Less(t, some.Singles, all.Singles)
	for _, kind := range []reconciletest.FaultKind{reconciletest.Faults.CrashDowntime, reconciletest.Faults.ConcurrentAction} {
		assert.Equal(t, all.Survived[kind], some.Survived[kind], kind)
		assert.NotZero(t, all.Survived[kind], kind)
	}
}
