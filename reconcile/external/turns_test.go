package external_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// logins returns a list of logins.
func logins(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("alice@%02d", i)
	}
	return strings.Join(all, ",")
}

// until makes passes until one is not put off. It returns the calls of each.
func (e *env) until(most int) (passes [][]string, reason string) {
	e.t.Helper()
	for range most {
		var calls []string
		var after time.Duration
		calls, reason, after = e.pass()
		passes = append(passes, calls)
		if after == 0 || after >= time.Minute {
			return passes, reason
		}
		e.clock.SetTime(e.clock.Now().Add(after))
	}
	require.Fail(e.t, "it does not end", "%v", passes)
	return nil, ""
}

// times returns how often each call was made, and the largest number of calls of a pass.
func times(passes [][]string) (calls map[string]int, largest int) {
	calls = map[string]int{}
	for _, pass := range passes {
		largest = max(largest, len(pass))
		for _, call := range pass {
			verb, _, _ := strings.Cut(call, " ")
			calls[verb]++
		}
	}
	return calls, largest
}

// The work of one pass is bounded, and a later one goes on: nothing is called twice.
func TestTurns(t *testing.T) {
	const n = 25
	looks := func(r *external.Resource[*Account, entry]) {
		several(r)
		r.Observed = func(*Account, entry) {}
	}
	tests := map[string]struct {
		reason  string
		edit    func(*external.Resource[*Account, entry])
		change  func(e *env)
		want    map[string]int
		largest int
	}{
		"creations": {
			"Each is looked for and created once.", several, func(*env) {}, map[string]int{"get": n, "create": n}, 10,
		},
		"creations that are observed": {
			"What follows from a call is made with it.", looks, func(*env) {}, map[string]int{"get": 2 * n, "create": n}, 11,
		},
		"updates": {
			"As above.", several, func(e *env) {
				e.until(100)
				e.edit(func(a *Account) { a.Spec.Quota = 2 })
			}, map[string]int{"get": n, "update": n}, 10,
		},
		"polls": {
			"Nothing differs.", several, func(e *env) {
				e.until(100)
				e.clock.SetTime(e.clock.Now().Add(time.Hour))
			}, map[string]int{"get": n}, 10,
		},
		"observations": {
			"Nothing is created.", func(r *external.Resource[*Account, entry]) {
				several(r)
				r.ObserveOnly = func(*Account) bool { return true }
			}, func(e *env) {
				for login := range strings.SplitSeq(logins(n), ",") {
					e.api.entries[login] = entry{Login: login}
				}
			}, map[string]int{"get": n}, 10,
		},
		"deletions": {
			"Each is looked at before and after.", several, func(e *env) {
				e.until(100)
				require.NoError(e.t, e.Delete(e.t.Context(), e.object))
			}, map[string]int{"get": 2 * n, "remove": n}, 12,
		},
		"another key for each": {
			"The new ones come first.", several, func(e *env) {
				e.until(100)
				e.edit(func(a *Account) { a.Spec.Login = strings.ReplaceAll(a.Spec.Login, "alice", "bob") })
			}, map[string]int{"get": 3 * n, "create": n, "remove": n}, 12,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, tc.edit)
			e.turns = 10
			e.restart()
			e.edit(func(a *Account) { a.Spec.Login = logins(n) })
			tc.change(e)
			passes, reason := e.until(100)
			if name != "deletions" {
				require.Equal(t, "Succeeded", reason)
			}
			calls, largest := times(passes)
			require.Equal(t, tc.want, calls, tc.reason)
			require.LessOrEqual(t, largest, tc.largest, tc.reason)
			calls2, _, _ := e.pass()
			require.Empty(t, calls2, "all is as desired")
		})
	}
}

// What a later pass goes on with is forgotten as soon as it may not hold any more.
func TestRoundBeginsAnew(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(e *env)
		want   []string // the calls of the next pass
	}{
		"nothing has changed":  {"The first three are known.", func(*env) {}, []string{"get alice@03", "update alice@00", "update alice@01"}},
		"another spec":         {"Other updates may be needed.", func(e *env) { e.edit(func(a *Account) { a.Spec.Quota = 3 }) }, []string{"get alice@00", "get alice@01", "get alice@02"}},
		"another process":      {"It remembers nothing.", func(e *env) { e.restart() }, []string{"get alice@00", "get alice@01", "get alice@02"}},
		"another object":       {"Its things are others.", func(e *env) { e.step.Forget(e.name()) }, []string{"get alice@00", "get alice@01", "get alice@02"}},
		"the status was lost":  {"It lacks what was observed.", func(e *env) { e.step.StatusNotWritten(e.name()) }, []string{"get alice@00", "get alice@01", "get alice@02"}},
		"a long time has gone": {"What is updated is observed again.", func(e *env) { e.clock.SetTime(e.clock.Now().Add(time.Hour)) }, []string{"get alice@03", "get alice@00", "update alice@00"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, several)
			e.edit(func(a *Account) { a.Spec.Login = logins(4) })
			e.until(10)
			e.turns = 3
			e.restart()
			e.edit(func(a *Account) { a.Spec.Quota = 2 })
			first, reason, _ := e.pass()
			require.Equal(t, []string{"get alice@00", "get alice@01", "get alice@02"}, first)
			require.Equal(t, reconcile.Yielded, reason)
			tc.change(e)
			calls, _, _ := e.pass()
			require.Equal(t, tc.want, calls, tc.reason)
			_, reason = e.until(20)
			require.Equal(t, "Succeeded", reason)
			for login, got := range e.api.entries {
				require.Equal(t, e.object.Spec.Quota, got.Quota, login)
			}
		})
	}
}

// A thing that goes while a round is put off is created again, and one that has become somebody else's is left alone.
func TestChangesDuringARound(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(e *env)
		want   entry
		ready  string
	}{
		"deleted":       {"It is created again.", func(e *env) { delete(e.api.entries, "alice@00") }, entry{Login: "alice@00", Owner: "default/alice", Quota: 2}, "Succeeded"},
		"somebody's":    {"Its mark is another one.", func(e *env) { e.api.entries["alice@00"] = entry{Owner: "bob"} }, entry{Owner: "bob"}, external.ReasonExists},
		"as desired":    {"Nothing is left to do.", func(e *env) { e.api.entries["alice@00"] = entry{Owner: "default/alice", Quota: 2} }, entry{Owner: "default/alice", Quota: 2}, "Succeeded"},
		"a second time": {"The update makes it as desired.", func(e *env) { e.api.entries["alice@00"] = entry{Owner: "default/alice", Quota: 7} }, entry{Owner: "default/alice", Quota: 2}, "Succeeded"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, several)
			e.edit(func(a *Account) { a.Spec.Login = logins(2) })
			e.until(10)
			e.turns = 2
			e.restart()
			e.edit(func(a *Account) { a.Spec.Quota = 2 })
			calls, _, _ := e.pass()
			require.Equal(t, []string{"get alice@00", "get alice@01"}, calls)
			tc.change(e)
			e.clock.SetTime(e.clock.Now().Add(time.Minute))
			reason := ""
			for range 10 {
				var after time.Duration
				if _, reason, after = e.pass(); reason == tc.ready {
					break
				}
				e.clock.SetTime(e.clock.Now().Add(after))
			}
			require.Equal(t, tc.ready, reason, tc.reason)
			require.Equal(t, tc.want, e.api.entries["alice@00"], tc.reason)
		})
	}
}

// A creation that was recorded by an earlier pass of the round, and not sent, is not a creation whose answer was lost.
func TestTakenDuringARound(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		several(r)
		r.IsOurs = nil
	})
	e.turns = 2
	e.restart()
	e.edit(func(a *Account) { a.Spec.Login = logins(2) })
	e.pass()
	require.Equal(t, []string{"alice@00?", "alice@01?"}, keysIn(e.object.Status.Account.Things))
	e.api.entries["alice@01"] = entry{Owner: "somebody else"}
	_, reason := e.until(10)
	require.Equal(t, external.ReasonExists, reason)
	require.Equal(t, entry{Owner: "somebody else"}, e.api.entries["alice@01"])
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.until(10)
	require.Equal(t, map[string]entry{"alice@01": {Owner: "somebody else"}}, e.api.entries)
}

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
			require.LessOrEqual(t, largest, tc.burst, "no pass waits for more")
			require.LessOrEqual(t, len(passes), tc.most, tc.reason)
			took := e.clock.Now().Sub(began)
			require.GreaterOrEqual(t, took, time.Duration(40-tc.burst-1)*100*time.Millisecond, "the quota is kept")
			require.LessOrEqual(t, took, 6*time.Second, "and used")
		})
	}
}

// An error ends the round: what was observed before it may not hold.
func TestErrorEndsARound(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.turns = 3
	e.restart()
	e.edit(func(a *Account) { a.Spec.Login = logins(4) })
	e.pass()
	e.api.fail = func(call string) (before, after error) {
		if call == "create alice@00" {
			return nil, errors.New("connection reset")
		}
		return nil, nil
	}
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice@03", "create alice@00"}, calls)
	require.Equal(t, "Failed", reason)
	e.api.fail = nil
	result, err := e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: e.name()})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Equal(t, "get alice@00", e.api.calls[2])
	_, reason = e.until(10)
	require.Equal(t, "Succeeded", reason)
}
