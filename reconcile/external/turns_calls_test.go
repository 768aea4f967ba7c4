package external_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// A function that yields in the middle of its work is called again, with what it has done until then.
func TestFunctionThatYields(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		update := r.Update
		r.Update = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, observed, desired entry) error {
			for q := observed.Quota + 1; q <= desired.Quota; q++ {
				if err := reconcile.Yield(ctx); err != nil {
					return fmt.Errorf("in the middle: %w", err)
				}
				if err := update(ctx, c, a, ref, observed, entry{Quota: q}); err != nil {
					return err
				}
			}
			return nil
		}
	})
	e.until(10)
	e.turns = 10
	e.restart()
	e.edit(func(a *Account) { a.Spec.Quota = 30 })
	passes, reason := e.until(10)
	require.Equal(t, "Succeeded", reason)
	calls, largest := times(passes)
	require.Equal(t, map[string]int{"get": 4, "update": 29}, calls)
	require.LessOrEqual(t, largest, 10)
}

// A quota holds no worker: a pass that has to wait ends.
func TestQuotaHoldsNoWorker(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		burst, most int
	}{
		"small burst": {"Each pass makes what the quota allows, and what follows from it.", 1, 60},
		"burst":       {"A pass comes when several calls are possible.", 10, 12},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				several(r)
				r.Quota = rate.NewLimiter(10, tc.burst)
			})
			e.edit(func(a *Account) { a.Spec.Login = logins(20) })
			began := e.clock.Now()
			passes, reason := e.until(100)
			require.Equal(t, "Succeeded", reason)
			calls, largest := times(passes)
			require.Equal(t, map[string]int{"get": 20, "create": 20}, calls, tc.reason)
			require.LessOrEqual(t, largest, 2*tc.burst, "no pass waits for more, and what was begun is done")
			require.LessOrEqual(t, len(passes), tc.most, tc.reason)
			took := e.clock.Now().Sub(began)
			require.GreaterOrEqual(t, took, time.Duration(40-2*tc.burst-1)*100*time.Millisecond, "the quota is kept, but for what was begun")
			require.LessOrEqual(t, took, 6*time.Second, "and used")
		})
	}
}

// An error ends the round: all is looked at again.
func TestErrorEndsARound(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.turns = 3
	e.restart()
	e.edit(func(a *Account) { a.Spec.Login = logins(4) })
	e.pass()
	e.api.fail = func(call string) (before, after error) {
		if call == "create alice@03" {
			return nil, errors.New("connection reset")
		}
		return nil, nil
	}
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice@03", "create alice@03"}, calls)
	require.Equal(t, "Failed", reason)
	e.api.fail = nil
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get alice@00", "get alice@01", "get alice@02"}, calls)
	_, reason = e.until(10)
	require.Equal(t, "Succeeded", reason)
}

// A pass that meets too many others at its server forgets nothing.
func TestBusyKeepsTheRound(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { several(r); r.Concurrency = 1 })
	e.turns = 3
	e.restart()
	e.edit(func(a *Account) { a.Spec.Login = logins(6) })
	for i := range 3 {
		if i == 1 {
			leave := e.step.Occupy(newAccount())
			_, reason, _ := e.pass()
			leave()
			require.Contains(t, []string{reconcile.Yielded, external.ReasonBusy}, reason)
			continue
		}
		e.pass()
	}
	require.Len(t, e.api.entries, 6)
}

// A function that observes or creates has no turns of its own: nothing could go on in the middle of it.
func TestObserveDoesNotYield(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		observe, create := r.Observe, r.Create
		pages := func(ctx context.Context) error {
			for range 12 {
				if err := reconcile.Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		}
		r.Observe = func(ctx context.Context, c client.Client, a *Account, ref external.Reference) (entry, error) {
			if err := pages(ctx); err != nil {
				return entry{}, err
			}
			return observe(ctx, c, a, ref)
		}
		r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			if err := pages(ctx); err != nil {
				return "", err
			}
			return create(ctx, c, a, ref, desired)
		}
	})
	e.turns = 2
	e.restart()
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice", "create alice"}, calls)
	require.Equal(t, "Succeeded", reason)
}

// Many objects that are edited at once use the whole quota, and nothing but it.
func TestQuotaIsUsed(t *testing.T) {
	const slow = 1200 * time.Millisecond
	var e *env
	e = newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		observe := r.Observe
		r.Observe = func(ctx context.Context, c client.Client, a *Account, ref external.Reference) (entry, error) {
			e.clock.SetTime(e.clock.Now().Add(slow))
			return observe(ctx, c, a, ref)
		}
		r.Quota = rate.NewLimiter(rate.Every(6*time.Second), 1)
	})
	e.until(10)
	e.edit(func(a *Account) { a.Spec.Quota = 2 })
	e.until(10)
	require.Equal(t, 2, e.api.entries["alice"].Quota, "the observation does not use up what the update needs")
}

// A failure of another step is shown while this one goes on.
func TestOtherStepFailsDuringARound(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.edit(func(a *Account) { a.Spec.Login = logins(10) })
	e.until(10)
	e.step = external.New(e.step.Resource)
	e.reconciler = reconcile.New(e.Client, e.named(),
		reconcile.Named("other", reconcile.Func(func(context.Context, client.Client, *Account) error { return errors.New("broken") }))).
		WithClock(e.clock).WithTurns(3, time.Hour)
	calls, reason, _ := e.pass()
	require.Len(t, calls, 3)
	require.Equal(t, "Failed", reason)
}
