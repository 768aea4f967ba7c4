package external_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/external"
)

// policies says which calls the object of a test forbids.
type policies struct{ observeOnly, createOnly, mustExist, retain bool }

func (p *policies) String() string {
	var names []string
	for _, one := range []struct {
		name  string
		holds bool
	}{{"ObserveOnly", p.observeOnly}, {"CreateOnly", p.createOnly}, {"MustExist", p.mustExist}, {"Retain", p.retain}} {
		if one.holds {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, "+")
}

func allPolicies() (all []*policies) {
	for i := range 16 {
		all = append(all, &policies{i&1 > 0, i&2 > 0, i&4 > 0, i&8 > 0})
	}
	return all
}

// newPolicyEnv returns an env and its policies. A test can change the policies although the spec of the object stays the
// same, like policies that depend on a label.
func newPolicyEnv(t *testing.T) (*env, *policies) {
	t.Helper()
	now := &policies{}
	return newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Others = nil
		r.ObserveOnly = func(*Account) bool { return now.observeOnly }
		r.CreateOnly = func(*Account) bool { return now.createOnly }
		r.MustExist = func(*Account) bool { return now.mustExist }
		r.Retain = func(*Account) bool { return now.retain }
	}), now
}

// changes returns only the calls that change something.
func changes(calls []string) (all []string) {
	for _, call := range calls {
		if !strings.HasPrefix(call, "get ") {
			all = append(all, call)
		}
	}
	return all
}

// TestPolicies tries all combinations of policies in all situations. Afterwards it removes the policies.
func TestPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		begin    func(e *env)
		wants    []string // the calls if nothing is forbidden
		released bool     // these calls are made as soon as the policies are removed
	}{
		"absent": {"MustExist and ObserveOnly forbid a creation", func(*env) {}, []string{"create alice"}, true},
		"drifted": {"CreateOnly and ObserveOnly forbid an update", func(e *env) {
			e.pass()
			e.api.entries["alice"] = entry{Login: "alice", Owner: "default/alice", Quota: 9}
			e.clock.SetTime(e.clock.Now().Add(time.Hour))
		}, []string{"update alice"}, true},
		"edited": {"as above", func(e *env) {
			e.pass()
			e.edit(func(a *Account) { a.Spec.Quota = 2 })
		}, []string{"update alice"}, true},
		"theirs": {"what is adopted is updated like what was created", func(e *env) {
			e.api.entries["alice"] = entry{Login: "alice", Owner: "somebody else", Quota: 9}
			e.edit(func(a *Account) { a.Spec.Adopt = true })
		}, []string{"update alice"}, true},
		"renamed": {"the former key is deleted when the new one is there, unless Retain or ObserveOnly keeps it", func(e *env) {
			e.pass()
			e.edit(func(a *Account) { a.Spec.Login = "bob" })
		}, []string{"create bob", "remove alice"}, false},
		"deleted": {"Retain and ObserveOnly forbid a deletion", func(e *env) {
			e.pass()
			require.NoError(e.t, e.Delete(e.t.Context(), e.object))
		}, []string{"remove alice"}, false},
	} {
		for _, forbidden := range allPolicies() {
			t.Run(fmt.Sprint(name, "/", forbidden), func(t *testing.T) {
				e, now := newPolicyEnv(t)
				tc.begin(e)
				*now = *forbidden
				mayCreate, mayUpdate := !now.observeOnly && !now.mustExist, !now.observeOnly && !now.createOnly
				var want []string
				for _, call := range tc.wants {
					verb, _, _ := strings.Cut(call, " ")
					if verb == "create" && !mayCreate {
						break // nothing is deleted before the new thing exists
					}
					if verb == "create" || verb == "update" && mayUpdate || verb == "remove" && !now.observeOnly && !now.retain {
						want = append(want, call)
					}
				}
				calls, _, _ := e.pass()
				require.Equal(t, want, changes(calls), tc.reason)
				if !tc.released {
					return
				}
				*now = policies{}
				calls, reason, _ := e.pass()
				require.ElementsMatch(t, tc.wants, slices.Concat(want, changes(calls)), "what was forbidden is done now")
				require.Equal(t, "Succeeded", reason)
			})
		}
	}
}

// TestRetainedStaysUnderFormerKeys changes the key of an object twice, and then deletes the object. The things are
// kept.
func TestRetainedStaysUnderFormerKeys(t *testing.T) {
	for name, keep := range map[string]policies{"Retain": {retain: true}, "ObserveOnly": {observeOnly: true}} {
		t.Run(name, func(t *testing.T) {
			e, now := newPolicyEnv(t)
			e.pass()
			*now = keep
			for _, login := range []string{"bob", "carol"} {
				e.edit(func(a *Account) { a.Spec.Login = login })
				calls, _, _ := e.pass()
				require.NotContains(t, strings.Join(calls, " "), "remove")
				require.Contains(t, calls, "get "+login, "the present key is observed")
			}
			require.NoError(t, e.Delete(t.Context(), e.object))
			calls, _, _ := e.pass()
			require.Empty(t, calls)
			require.Contains(t, e.api.entries, "alice")
		})
	}
}

// TestReleasedObserveOnlyDropsFormerKey: for some time an object has ObserveOnly and another key. When ObserveOnly ends, the
// thing with the former key is deleted.
func TestReleasedObserveOnlyDropsFormerKey(t *testing.T) {
	e, now := newPolicyEnv(t)
	e.pass()
	now.observeOnly = true
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	_, reason, _ := e.pass()
	require.Equal(t, "NotFound", reason)
	now.observeOnly = false
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"create bob", "remove alice"}, changes(calls))
	require.Equal(t, "Succeeded", reason)
}
