package external_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// several makes a resource create one account for each login in a list that is separated by commas. All logins with the same text
// before the @ belong to one object.
func several(r *external.Resource[*Account, entry]) {
	r.Key, r.Keys = nil, func(a *Account) []string { return strings.Split(a.Spec.Login, ",") }
	r.Group = func(key string) string {
		name, _, _ := strings.Cut(key, "@")
		return name
	}
}

// keysIn returns the keys of the references. If the thing is pending, a question mark follows its key.
func keysIn(references []external.Reference) (keys []string) {
	for _, ref := range references {
		if ref.Pending {
			ref.Key += "?"
		}
		keys = append(keys, ref.Key)
	}
	return keys
}

func TestKeys(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.edit(func(a *Account) { a.Spec.Login = "alice@a,alice@b" })
	var recorded []string
	e.api.fail = func(call string) (before, after error) {
		if strings.HasPrefix(call, "create ") && recorded == nil {
			require.NoError(t, e.Get(t.Context(), e.name(), e.object))
			recorded = keysIn(e.object.Status.Account.Things)
		}
		return nil, nil
	}
	for _, step := range []struct {
		reason, logins string
		calls          []string
	}{
		{"all are looked up before one is created", "alice@a,alice@b", []string{"get alice@a", "get alice@b", "create alice@a", "create alice@b"}},
		{"nothing has changed", "alice@a,alice@b", nil},
		{"the new one comes before the former one goes", "alice@b,alice@c", []string{"get alice@b", "get alice@c", "create alice@c", "get alice@a", "remove alice@a", "get alice@a"}},
		{"a former one is wanted again", "alice@a,alice@b,alice@c", []string{"get alice@a", "get alice@b", "get alice@c", "create alice@a"}},
	} {
		if e.object.Spec.Login != step.logins {
			e.edit(func(a *Account) { a.Spec.Login = step.logins })
		}
		calls, reason, _ := e.pass()
		require.Equal(t, step.calls, calls, step.reason)
		require.Equal(t, "Succeeded", reason)
		require.Equal(t, strings.Split(step.logins, ","), keysIn(e.object.Status.Account.Things), step.reason)
	}
	require.Equal(t, []string{"alice@a?", "alice@b?"}, recorded, "all are recorded before the first is created")

	delete(e.api.entries, "alice@b")
	e.clock.SetTime(e.clock.Now().Add(10 * time.Minute))
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice@a", "get alice@b", "get alice@c", "create alice@b"}, calls, "somebody has removed it")
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.pass()
	require.Empty(t, e.api.entries)
}

// TestOneOfSeveralIsTheirs proves that a pass changes nothing if one of the desired things belongs to somebody else.
func TestOneOfSeveralIsTheirs(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.pass()
	e.api.entries["alice@b"] = entry{Owner: "somebody else"}
	e.edit(func(a *Account) { a.Spec.Login = "alice@a,alice@b" })
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice@a", "get alice@b"}, calls)
	require.Equal(t, "AlreadyExists", reason)
	require.Equal(t, []string{"alice"}, keysIn(e.object.Status.Account.Former), "what it had stays, and stays recorded")
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.pass()
	require.Equal(t, map[string]entry{"alice@b": {Owner: "somebody else"}}, e.api.entries)
}

func TestRecreate(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Recreate = true })
	e.pass()
	e.api.entries["bob"] = entry{Owner: "somebody else"}
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get bob"}, calls, "nothing is deleted if the new one cannot become ours")
	delete(e.api.entries, "bob")
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get bob", "get alice", "remove alice", "get alice", "create bob"}, calls)
}

func TestAdmit(t *testing.T) {
	refusal, asked := error(nil), 0
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Admit = func(_ context.Context, _ client.Client, _ *Account, _ external.Reference, observed *entry) error {
			asked++
			require.Nil(t, observed)
			return refusal
		}
	})
	for _, tc := range []struct {
		reason, want string
		refusal      error
	}{
		{"the answer may be another one later", "OutOfCredit", reconcile.Wait("OutOfCredit", time.Minute, "there is no credit")},
		{"it would be refused again", "NotAllowed", external.Refused("NotAllowed", errors.New("not in this region"))},
		{"it could not be asked", "Failed", errors.New("connection reset")},
	} {
		refusal = tc.refusal
		calls, reason, _ := e.pass()
		require.Equal(t, []string{"get alice"}, calls, tc.reason)
		require.Equal(t, tc.want, reason, tc.reason)
		require.Empty(t, e.object.Status.Account.Key, "nothing is recorded: %s", tc.reason)
	}
	refusal, asked = nil, 0
	e.pass()
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, 1, asked, "it is not asked of what is ours")
}

func TestReady(t *testing.T) {
	isReady := false
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Ready = func(_ *Account, observed, desired entry) error {
			if isReady && observed.Quota == desired.Quota {
				return nil
			}
			return reconcile.Wait("Preparing", 10*time.Second, "the API prepares it")
		}
	})
	calls, reason, after := e.pass()
	require.Equal(t, []string{"get alice", "create alice", "get alice"}, calls)
	require.Equal(t, "Preparing", reason)
	require.Equal(t, 10*time.Second, after)
	require.False(t, e.object.Status.Account.Pending, "it is there, so it is not created again")
	isReady = true
	calls, reason, _ = e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	calls, _, _ = e.pass()
	require.Empty(t, calls)
}

// TestSave stores the record in separate fields of the status, by Save.
func TestSave(t *testing.T) {
	saved := 0
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Record = func(a *Account) *external.Record {
			var record external.Record
			if login, isPending := strings.CutSuffix(a.Status.Login, "?"); login != "" {
				record.Reference = external.Reference{Key: login, Pending: isPending}
			}
			return &record
		}
		r.Save = func(a *Account, record *external.Record) {
			saved++
			if a.Status.Login = record.Key; record.Pending {
				a.Status.Login += "?"
			}
		}
	})
	e.api.fail = func(call string) (before, after error) {
		if call == "create alice" {
			return nil, errors.New("connection reset")
		}
		return nil, nil
	}
	e.pass()
	require.Equal(t, "alice?", e.object.Status.Login)
	e.api.fail = nil
	_, reason, _ := e.pass()
	require.Equal(t, "Succeeded", reason)
	require.Equal(t, "alice", e.object.Status.Login)
	saved = 0
	e.pass()
	require.Zero(t, saved, "nothing has changed")
}

// TestDeletion: after the deletion, the API shows a thing with the same key.
func TestDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		shows  entry
		edit   func(*external.Resource[*Account, entry])
		before bool     // the API also shows the thing before the deletion
		calls  []string // the calls of two passes
		want   string
	}{
		"slow": {
			"it is going to be gone", entry{Owner: "default/alice"}, func(*external.Resource[*Account, entry]) {}, false,
			[]string{"get alice", "remove alice", "get alice", "get alice", "remove alice", "get alice"}, "Deleting",
		},
		"successor": {
			"somebody else was fast, and keeps it", entry{Owner: "somebody else"}, func(*external.Resource[*Account, entry]) {}, false,
			[]string{"get alice", "remove alice", "get alice"}, "",
		},
		"theirs": {
			"somebody has deleted ours, and somebody else has created another one", entry{Owner: "somebody else"}, func(*external.Resource[*Account, entry]) {}, true,
			[]string{"get alice"}, "",
		},
		"without marks": {
			"nothing tells whose it is", entry{Owner: "somebody else"}, func(r *external.Resource[*Account, entry]) { r.MarksOnlyPending, r.DeletesAtOnce = true, true }, true,
			[]string{"remove alice"}, "",
		},
		"at once": {
			"the answer says that it is gone", entry{Owner: "default/alice"}, func(r *external.Resource[*Account, entry]) { r.DeletesAtOnce = true }, false,
			[]string{"get alice", "remove alice"}, "",
		},
		"not found": {
			"a client may answer so", entry{Owner: "default/alice"}, func(r *external.Resource[*Account, entry]) {
				r.DeletesAtOnce = true
				r.Delete = func(context.Context, client.Client, *Account, external.Reference) error {
					return fmt.Errorf("404: %w", external.ErrNotFound)
				}
			}, false,
			[]string{"get alice"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, tc.edit)
			e.pass()
			e.api.fail = func(call string) (before, after error) {
				if call == "get alice" && (tc.before || slices.Contains(e.api.calls, "remove alice")) {
					e.api.entries["alice"] = tc.shows
				}
				return nil, nil
			}
			require.NoError(t, e.Delete(t.Context(), e.object))
			first, reason, _ := e.pass()
			if tc.want == "" {
				require.Error(t, e.Get(t.Context(), e.name(), e.object), "the object is gone: %s", tc.reason)
				require.Equal(t, tc.calls, first, tc.reason)
				return
			}
			second, _, _ := e.pass()
			require.Equal(t, tc.calls, append(first, second...), tc.reason)
			require.Equal(t, tc.want, reason, tc.reason)
		})
	}
}

// TestUnknownVersion: a part of the thing can be written but not read. If it is not known whether that part is as desired, the pass
// writes it again.
func TestUnknownVersion(t *testing.T) {
	ours := entry{Login: "alice", Owner: "default/alice", Quota: 1}
	for name, tc := range map[string]struct {
		reason string
		status external.Record
		exists entry
		calls  []string
	}{
		"confirmed":  {"it is as it was", external.Record{Reference: external.Reference{Key: "alice"}, Version: "one"}, ours, []string{"get alice"}},
		"pending":    {"the answer was lost", external.Record{Reference: external.Reference{Key: "alice", Pending: true}}, ours, []string{"get alice", "update alice"}},
		"taken over": {"somebody else has created it", external.Record{}, entry{Quota: 1}, []string{"get alice", "update alice"}},
		"former": {
			"it was not updated while it was not wanted", external.Record{Former: []external.Reference{{Key: "alice"}}, Version: "one"}, ours,
			[]string{"get alice", "update alice"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				r.Version = func(context.Context, client.Client, *Account) (string, error) { return "one", nil }
				r.Adopt = func(*Account, entry) error { return nil }
			})
			e.api.entries["alice"] = tc.exists
			e.object.Status.Account = tc.status
			require.NoError(t, e.Status().Update(t.Context(), e.object))
			calls, reason, _ := e.pass()
			require.Equal(t, tc.calls, calls, tc.reason)
			require.Equal(t, "Succeeded", reason)
			require.Equal(t, "one", e.object.Status.Account.Version)
		})
	}
}

// TestAdmitForgetsWhatIsTheirs: a creation was recorded, but never had an effect. Then somebody else created a thing
// with the same key.
func TestAdmitForgetsWhatIsTheirs(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Adopt = func(*Account, entry) error { return nil }
		r.Admit = func(context.Context, client.Client, *Account, external.Reference, *entry) error {
			return reconcile.Wait("TooPowerful", time.Minute, "it may do too much")
		}
	})
	e.object.Status.Account.Reference = external.Reference{Key: "alice", Pending: true}
	require.NoError(t, e.Status().Update(t.Context(), e.object))
	e.api.entries["alice"] = entry{Owner: "somebody else"}
	_, reason, _ := e.pass()
	require.Equal(t, "TooPowerful", reason)
	require.Empty(t, e.object.Status.Account.Key, "no deletion deletes it")
}

// TestUnknownVersionOfOne: an object has two things, and the step does not know with which version one of them was written. The record has
// only one version for both, so the step writes both again.
func TestUnknownVersionOfOne(t *testing.T) {
	both := []string{"get alice@a", "get alice@b", "update alice@a", "update alice@b"}
	for name, tc := range map[string]struct {
		reason string
		theirs bool     // somebody else has created the second thing
		calls  []string // the calls of the first pass that succeeds
	}{
		"taken over":      {"it has what somebody else has written", true, both},
		"lost answer":     {"an earlier pass may have written something else", false, both},
		"answer received": {"this pass has written it", false, []string{"get alice@a", "get alice@b", "create alice@b"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				several(r)
				r.Version = func(context.Context, client.Client, *Account) (string, error) { return "one", nil }
				r.Adopt = func(*Account, entry) error { return nil }
			})
			e.edit(func(a *Account) { a.Spec.Login = "alice@a" })
			e.pass()
			e.edit(func(a *Account) { a.Spec.Login = "alice@a,alice@b" })
			if tc.theirs {
				e.api.entries["alice@b"] = entry{Quota: 1}
			}
			if name == "lost answer" {
				e.api.fail = func(call string) (before, after error) {
					if call == "create alice@b" {
						return nil, errors.New("connection reset")
					}
					return nil, nil
				}
				e.pass()
				e.api.fail = nil
			}
			calls, reason, _ := e.pass()
			require.Equal(t, tc.calls, calls, tc.reason)
			require.Equal(t, "Succeeded", reason)
			require.Equal(t, "one", e.object.Status.Account.Version)
		})
	}
}

// TestFormerVersionSurvivesAFailure: a former key is desired again, and the first pass fails. A part of the thing that cannot be read
// may have an old version, so the pass that succeeds writes it again.
func TestFormerVersionSurvivesAFailure(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Version = func(context.Context, client.Client, *Account) (string, error) { return "two", nil }
	})
	e.api.entries["alice"] = entry{Login: "alice", Owner: "default/alice", Quota: 1}
	e.object.Status.Account = external.Record{Former: []external.Reference{{Key: "alice"}}, Version: "two"} // this version was written to the thing with the other key
	require.NoError(t, e.Status().Update(t.Context(), e.object))
	e.api.fail = func(string) (before, after error) { return errors.New("no"), nil }
	e.pass()
	e.api.fail = nil
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice", "update alice"}, calls)
}

// TestKeysInAnyOrder: the function returns keys that are not sorted, and one of them twice.
func TestKeysInAnyOrder(t *testing.T) {
	e := newEnv(t, external.ByKey, several)
	e.edit(func(a *Account) { a.Spec.Login = "alice@b,alice@a,alice@b" })
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice@a", "get alice@b", "create alice@a", "create alice@b"}, calls)
	calls, _, _ = e.pass()
	require.Empty(t, calls)
}

func TestNoKeys(t *testing.T) {
	keys, missing := []string{"alice"}, error(nil)
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Key, r.Keys = nil, func(*Account) []string { return keys }
		r.Version = func(context.Context, client.Client, *Account) (string, error) { return "", missing }
		desired := r.Desired
		r.Desired = func(ctx context.Context, c client.Client, a *Account) (entry, error) {
			wanted, err := desired(ctx, c, a)
			return wanted, errors.Join(err, missing)
		}
	})
	e.pass()
	keys, missing = nil, errors.New("the Secret is gone") // without keys, the Secret does not matter
	e.edit(func(*Account) {})
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice", "remove alice", "get alice"}, calls, "nothing is desired any more")
	require.Equal(t, "Succeeded", reason)
	calls, _, _ = e.pass()
	require.Empty(t, calls)
}
