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

// A function that calls Yield in the middle of its work is called again in a later pass, and finds what it has done
// before.
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

// If a pass has to wait for the quota, it ends, so that it does not block a worker.
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

// After an error, all things are observed again.
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

// If too many other objects call the server, a pass ends, and a later pass continues its work.
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

// Functions that observe or create must not be interrupted by Yield, because a later pass could not continue in the
// middle of them.
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

// If a person changes many objects at once, their passes use the whole quota, and not more.
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

// While this step continues its work in later passes, the condition shows the failure of another step.
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
