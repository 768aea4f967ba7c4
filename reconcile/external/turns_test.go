package external_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// until runs passes until all work is done. It returns the calls of each pass.
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

// times returns how often each call was made, and the largest number of calls in one pass.
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

// A pass makes only a limited number of calls, and a later pass continues. No call is made twice.
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
			"Each is looked for and created once. What was begun is done in the same pass.", several, func(*env) {}, map[string]int{"get": n, "create": n}, 20,
		},
		"creations that are observed": {
			"What follows from a call is made with it.", looks, func(*env) {}, map[string]int{"get": 2 * n, "create": n}, 30,
		},
		"updates": {
			"As above.", several, func(e *env) {
				e.until(100)
				e.edit(func(a *Account) { a.Spec.Quota = 2 })
			}, map[string]int{"get": n, "update": n}, 20,
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
			}, map[string]int{"get": 3 * n, "create": n, "remove": n}, 23,
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

// If the results of earlier passes may not be true any more, all things are observed again.
func TestRoundBeginsAnew(t *testing.T) {
	anew := []string{"get alice@00", "get alice@01", "get alice@02"}
	tests := map[string]struct {
		reason string
		change func(e *env)
		want   []string // the calls of the next pass
	}{
		"nothing has changed": {"The first three are done.", func(*env) {}, []string{"get alice@03", "update alice@03"}},
		"another spec": {
			"Other updates may be needed.", func(e *env) { e.edit(func(a *Account) { a.Spec.Quota = 3 }) },
			append(anew[:3:3], "update alice@00", "update alice@01", "update alice@02"),
		},
		"a request": {
			"A person wants to know how it is now.", func(e *env) {
				e.edit(func(a *Account) { a.Annotations = map[string]string{reconcile.RequestedAnnotation: "now"} })
			}, anew,
		},
		"another process":     {"It remembers nothing.", func(e *env) { e.restart() }, anew},
		"another object":      {"Its things are others.", func(e *env) { e.step.Forget(e.name()) }, anew},
		"the status was lost": {"It lacks what was observed.", func(e *env) { e.step.StatusNotWritten(e.name()) }, anew},
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
			require.Equal(t, append(anew[:3:3], "update alice@00", "update alice@01", "update alice@02"), first)
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

// If a long time has passed between two passes that share the work, all things are observed again soon.
func TestLongRound(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.edit(func(a *Account) { a.Spec.Login = logins(4) })
	e.until(10)
	e.turns = 3
	e.restart()
	e.pass()
	delete(e.api.entries, "alice@00")
	e.clock.SetTime(e.clock.Now().Add(24 * time.Hour))
	calls, _, after := e.pass()
	require.Equal(t, []string{"get alice@03"}, calls)
	require.LessOrEqual(t, after, 6*time.Second, "the round began long ago")
	e.clock.SetTime(e.clock.Now().Add(after))
	e.until(10)
	require.Contains(t, e.api.entries, "alice@00")
}

// A pass does not record the things that only a later pass will create, because somebody else may create them first.
func TestTakenDuringARound(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		several(r)
		r.IsOurs = nil
	})
	e.turns = 2
	e.restart()
	e.edit(func(a *Account) { a.Spec.Login = logins(3) })
	e.pass()
	require.Equal(t, []string{"alice@00", "alice@01"}, keysIn(e.object.Status.Account.Things))
	e.api.entries["alice@02"] = entry{Owner: "somebody else"}
	_, reason := e.until(10)
	require.Equal(t, "AlreadyExists", reason)
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.until(10)
	require.Equal(t, map[string]entry{"alice@02": {Owner: "somebody else"}}, e.api.entries)
}
