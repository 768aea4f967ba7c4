package external_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// recorder is a fake API that records its calls, and fails when the test tells it to.
type recorder struct {
	entries map[string]entry
	calls   []string
	fail    func(call string) (before, after error)
	given   bool // the API gives IDs
	hidden  bool // the API does not show existing things
}

func (r *recorder) call(name string, do func() error) error {
	r.calls = append(r.calls, name)
	var before, after error
	if r.fail != nil {
		before, after = r.fail(name)
	}
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

func (r *recorder) get(_ context.Context, ref external.Reference) (e entry, err error) {
	err = r.call("get "+ref.String(), func() error {
		var exists bool
		if e, exists = r.entries[ref.String()]; !exists || r.hidden {
			return external.ErrNotFound
		}
		return nil
	})
	return e, err
}

func (r *recorder) create(_ context.Context, owner string, ref external.Reference, quota int) (id string, err error) {
	err = r.call("create "+ref.Key, func() error {
		key := ref.Key
		if r.given {
			id = fmt.Sprintf("id-%d", len(r.entries)+1)
			key = id
		}
		if _, exists := r.entries[key]; exists {
			return external.ErrExists
		}
		r.entries[key] = entry{Login: ref.Key, Owner: owner, Quota: quota}
		return nil
	})
	return id, err
}

func (r *recorder) update(_ context.Context, ref external.Reference, quota int) error {
	return r.call("update "+ref.String(), func() error {
		e := r.entries[ref.String()]
		e.Quota = quota
		r.entries[ref.String()] = e
		return nil
	})
}

func (r *recorder) remove(_ context.Context, ref external.Reference) error {
	return r.call("remove "+ref.String(), func() error { delete(r.entries, ref.String()); return nil })
}

// env is an object with a reconciler. The test sets the clock of the reconciler.
type env struct {
	client.Client
	t          *testing.T
	api        *recorder
	clock      *clocktesting.FakePassiveClock
	reconciler *reconcile.Reconciler[*Account]
	step       *external.Step[*Account, entry]
	limit      time.Duration // GiveUpCleanupAfter; 0 for no limit
	object     *Account
	turns      int // the number of calls in one pass; 0 for the default
}

func newEnv(t *testing.T, identity external.Identity, edit func(*external.Resource[*Account, entry])) *env {
	t.Helper()
	e := &env{t: t, api: &recorder{entries: map[string]entry{}, given: identity != external.ByKey}, object: newAccount()}
	e.object.UID, e.object.Generation = "6d1f", 1
	e.clock = clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	e.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(e.object).WithStatusSubresource(e.object).Build()
	r := resource(e.api, identity)
	r.Clock = e.clock
	if edit != nil {
		edit(&r)
	}
	e.step = external.New(r)
	e.restart()
	return e
}

// named returns the step with its options.
func (e *env) named() reconcile.NamedStep[*Account] {
	return reconcile.Named("account", e.step).Finalizer("test.opblocks.dev/account").GiveUpCleanupAfter(e.limit)
}

// restart starts a new process, which remembers nothing.
func (e *env) restart() {
	e.step = external.New(e.step.Resource)
	e.reconciler = reconcile.New(e.Client, e.named()).WithClock(e.clock)
	if e.turns > 0 {
		e.reconciler.WithTurns(e.turns, time.Hour)
	}
}

// pass reconciles the object once, and returns the calls, the reason of Ready and the delay until the next pass.
func (e *env) pass() (calls []string, reason string, after time.Duration) {
	e.t.Helper()
	e.api.calls = nil
	result, err := e.reconciler.Reconcile(e.t.Context(), ctrl.Request{NamespacedName: e.name()})
	require.NoError(e.t, err)
	if err := e.Get(e.t.Context(), e.name(), e.object); err == nil {
		ready, _ := conditions.Get(e.object.Status.Conditions, conditions.Ready)
		reason = ready.Reason
	}
	return e.api.calls, reason, result.RequeueAfter
}

func (e *env) name() types.NamespacedName { return client.ObjectKeyFromObject(e.object) }

func (e *env) edit(change func(*Account)) {
	e.t.Helper()
	require.NoError(e.t, e.Get(e.t.Context(), e.name(), e.object))
	change(e.object)
	e.object.Generation++
	require.NoError(e.t, e.Update(e.t.Context(), e.object))
}

func TestQuietPass(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice", "create alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	calls, _, after := e.pass()
	require.Empty(t, calls, "nothing has changed")
	require.InDelta(t, 10*time.Minute, after, float64(time.Minute+time.Second))

	e.clock.SetTime(e.clock.Now().Add(10 * time.Minute))
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get alice"}, calls, "it is due")
	e.api.entries["alice"] = entry{Owner: "default/alice", Quota: 9}
	e.edit(func(a *Account) {
		a.Annotations = map[string]string{reconcile.RequestedAnnotation: "now"}
		a.Generation--
	})
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get alice", "update alice"}, calls, "a person has requested it, and somebody has changed it")
	require.Equal(t, 1, e.api.entries["alice"].Quota)
}

func TestVersionLeadsToUpdate(t *testing.T) {
	version := "one"
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Version = func(context.Context, client.Client, *Account) (string, error) { return version, nil }
	})
	e.pass()
	require.Equal(t, "one", e.object.Status.Account.Version)
	version = "two"
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice", "update alice"}, calls, "a password cannot be compared")
	require.Equal(t, "two", e.object.Status.Account.Version)
	calls, _, _ = e.pass()
	require.Empty(t, calls)
}

func TestAnswersOfTheAPI(t *testing.T) {
	lost := errors.New("connection reset")
	for name, tc := range map[string]struct {
		reason      string
		identity    external.Identity
		before      error // returned by Create without an effect
		after       error // returned by Create after its effect
		want        string
		pending     bool
		second      []string // the calls of the next pass
		secondState string
	}{
		"refused": {
			"nothing was created, so nothing is recorded", external.ByKey, external.Refused("TooLarge", errors.New("quota is too large")), nil,
			"TooLarge", false, []string{"get alice", "create alice"}, "Succeeded",
		},
		"throttled": {
			"the API says when", external.ByKey, external.Throttled(time.Hour, errors.New("429")), nil,
			external.ReasonRateLimited, false, []string{"get alice", "create alice"}, "Succeeded",
		},
		"not sent": {
			"it may have had an effect", external.ByKey, lost, nil, "Failed", true, []string{"get alice", "create alice"}, "Succeeded",
		},
		"lost, by key": {
			"it is found by its name, and is ours", external.ByKey, nil, lost, "Failed", true, []string{"get alice"}, "Succeeded",
		},
		"lost, by ID": {
			"nothing tells whether it exists, so it is not created again", external.ByID, nil, lost, "Failed", true, nil, "CreationUnknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, tc.identity, nil)
			e.api.fail = func(call string) (before, after error) {
				if call == "create alice" {
					return tc.before, tc.after
				}
				return nil, nil
			}
			_, state, _ := e.pass()
			require.Equal(t, tc.want, state, tc.reason)
			require.Equal(t, tc.pending, e.object.Status.Account.Pending, tc.reason)
			e.api.fail = nil
			e.clock.SetTime(e.clock.Now().Add(time.Hour))
			calls, state, _ := e.pass()
			require.Equal(t, tc.second, calls, tc.reason)
			require.Equal(t, tc.secondState, state, tc.reason)
			require.LessOrEqual(t, len(e.api.entries), 1)
		})
	}
}

// TestNothingIsDoneWithoutACheckpoint calls the step outside of package reconcile, where a checkpoint returns an
// error.
func TestNothingIsDoneWithoutACheckpoint(t *testing.T) {
	ours := external.Record{Reference: external.Reference{Key: "alice"}}
	for name, tc := range map[string]struct {
		reason string
		record external.Record
		call   func(ctx context.Context, s *external.Step[*Account, entry], c client.Client, a *Account) error
	}{
		"creation": {"a crash would leak it", external.Record{}, func(ctx context.Context, s *external.Step[*Account, entry], c client.Client, a *Account) error {
			return s.Reconcile(ctx, c, a)
		}},
		"update": {"the object may have been changed since", ours, func(ctx context.Context, s *external.Step[*Account, entry], c client.Client, a *Account) error {
			return s.Reconcile(ctx, c, a)
		}},
		"deletion": {"the object may be another one by now", ours, func(ctx context.Context, s *external.Step[*Account, entry], c client.Client, a *Account) error {
			return s.Finalize(ctx, c, a)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, nil)
			if tc.record.Key != "" {
				e.api.entries["alice"] = entry{Owner: "default/alice", Quota: 9}
			}
			e.object.Status.Account = tc.record
			err := tc.call(t.Context(), external.New(resource(e.api, external.ByKey)), e.Client, e.object)
			require.ErrorContains(t, err, "checkpoint", tc.reason)
			require.Subset(t, []string{"get alice"}, e.api.calls, "only reads are allowed")
		})
	}
}

func TestGrace(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Grace = time.Minute })
	e.api.hidden = true
	_, reason, after := e.pass()
	require.Equal(t, "Creating", reason)
	require.Equal(t, 5*time.Second, after)
	e.clock.SetTime(e.clock.Now().Add(5 * time.Second))
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice"}, calls, "it is not created again")
	require.Equal(t, "Creating", reason)
	e.api.hidden = false
	calls, reason, _ = e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	require.False(t, e.object.Status.Account.Pending)
}

// TestGraceOfFormerKey changes the key while the API does not yet show the thing with the former key.
func TestGraceOfFormerKey(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.Grace, r.Others = time.Minute, nil })
	e.api.hidden = true
	e.pass()
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	e.pass()
	e.clock.SetTime(e.clock.Now().Add(30 * time.Second))
	e.api.fail = func(call string) (before, after error) {
		if call == "get alice" { // the API shows the new thing before the former one
			return external.ErrNotFound, nil
		}
		return nil, nil
	}
	e.api.hidden = false
	_, reason, after := e.pass()
	require.Equal(t, "Deleting", reason)
	require.Equal(t, 30*time.Second, after)
	e.api.fail = nil
	_, reason, _ = e.pass()
	require.Equal(t, "Succeeded", reason)
	require.NotContains(t, e.api.entries, "alice", "it is not left behind")
}

func TestObserveOnly(t *testing.T) {
	seen := 0
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.ObserveOnly = func(*Account) bool { return true }
		r.Observed = func(_ *Account, e entry) { seen = e.Quota }
	})
	_, reason, _ := e.pass()
	require.Equal(t, "NotFound", reason)
	e.api.entries["alice"] = entry{Quota: 7}
	calls, reason, _ := e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	require.Equal(t, "Succeeded", reason)
	require.Equal(t, 7, seen)
	require.Equal(t, external.Record{Generation: 1}, e.object.Status.Account, "nothing is recorded as ours")
	require.NoError(t, e.Delete(t.Context(), e.object))
	calls, _, _ = e.pass()
	require.Empty(t, calls)
	require.Len(t, e.api.entries, 1)
}

func TestDeletionWaitsForTheAPI(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	e.pass()
	slow := e.api.entries["alice"]
	e.api.fail = func(call string) (before, after error) {
		if call == "get alice" {
			e.api.entries["alice"] = slow
		}
		return nil, nil
	}
	require.NoError(t, e.Delete(t.Context(), e.object))
	_, reason, after := e.pass()
	require.Equal(t, "Deleting", reason)
	require.Equal(t, 5*time.Second, after)
	e.api.fail = nil
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice", "remove alice", "get alice"}, calls)
	require.Zero(t, e.step.Remembered(), "nothing is remembered of an object that is gone")
	require.Error(t, e.Get(t.Context(), e.name(), e.object), "the object is gone")
}

// TestObservedIsNotToldOfAFormerKey deletes the thing with a former key while the API still shows it. The function
// Observed is not called for that thing.
func TestObservedIsNotToldOfAFormerKey(t *testing.T) {
	var seen []string
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Others, r.Observed = nil, func(_ *Account, e entry) { seen = append(seen, e.Login) }
	})
	e.pass()
	slow := e.api.entries["alice"]
	e.edit(func(a *Account) { a.Spec.Login = "bob" })
	e.api.fail = func(call string) (before, after error) {
		if call == "get alice" {
			e.api.entries["alice"] = slow
		}
		return nil, nil
	}
	calls, reason, _ := e.pass()
	require.Contains(t, calls, "get alice")
	require.Equal(t, "Deleting", reason)
	require.Equal(t, []string{"alice", "bob"}, seen, "what is about to be deleted does not say what bob is")
}

func TestSetupErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		edit   func(*external.Resource[*Account, entry])
		want   string
	}{
		"a function":         {"it is called later", func(r *external.Resource[*Account, entry]) { r.Observe = nil }, "set Observe"},
		"a key":              {"ByKey finds by it", func(r *external.Resource[*Account, entry]) { r.Key = nil }, "set Key"},
		"a negative time":    {"it has no meaning", func(r *external.Resource[*Account, entry]) { r.Every = -1 }, "less than 0"},
		"a floor above":      {"no interval would be allowed", func(r *external.Resource[*Account, entry]) { r.EveryAtLeast = time.Hour }, "EveryAtLeast"},
		"another Identity":   {"it is unknown", func(r *external.Resource[*Account, entry]) { r.Identity = 7 }, "Identity is 7"},
		"nothing is needed":  {"ByID needs no key", func(r *external.Resource[*Account, entry]) { r.Key, r.Others, r.Identity = nil, nil, external.ByID }, ""},
		"nothing to compare": {"all objects would want the same", func(r *external.Resource[*Account, entry]) { r.Key, r.Identity = nil, external.ByID }, "set Key or Keys, which Others compares"},
	} {
		t.Run(name, func(t *testing.T) {
			r := resource(nil, external.ByKey)
			tc.edit(&r)
			err := external.New(r).SetupWithBuilder(nil, nil)
			if tc.want == "" {
				require.NoError(t, err, tc.reason)
				return
			}
			require.ErrorContains(t, err, tc.want, tc.reason)
		})
	}
}

func TestRecordReturnsNil(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Record = func(*Account) *external.Record { return nil }
	})
	calls, reason, _ := e.pass()
	require.Empty(t, calls, "nothing would be recorded of what is created")
	require.Equal(t, "Invalid", reason)
	ready, _ := conditions.Get(e.object.Status.Conditions, conditions.Ready)
	require.Contains(t, ready.Message, "the function Record (external_test.TestRecordReturnsNil")
	require.Contains(t, ready.Message, "return a pointer to a field of the status")
}

func TestCallEndsAfterTimeout(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Timeout = time.Millisecond
		r.Observe = func(ctx context.Context, _ client.Client, _ *Account, _ external.Reference) (entry, error) {
			<-ctx.Done()
			return entry{}, ctx.Err()
		}
	})
	_, reason, _ := e.pass()
	require.Equal(t, external.ReasonUnreachable, reason)
	ready, _ := conditions.Get(e.object.Status.Conditions, conditions.Ready)
	require.Contains(t, ready.Message, "no answer within 1ms")
}

// TestSomebodyElseWasFaster: a creation was recorded, but never had an effect. Then somebody else created a thing
// with the same key.
func TestSomebodyElseWasFaster(t *testing.T) {
	theirs := entry{Login: "alice", Owner: "somebody else", Quota: 7}
	begin := func(t *testing.T) *env {
		t.Helper()
		e := newEnv(t, external.ByKey, nil)
		e.api.fail = func(call string) (before, after error) {
			if call == "create alice" {
				return errors.New("connection reset"), nil
			}
			return nil, nil
		}
		e.pass()
		require.True(t, e.object.Status.Account.Pending)
		e.api.entries["alice"] = theirs
		return e
	}
	t.Run("next pass", func(t *testing.T) {
		e := begin(t)
		calls, reason, _ := e.pass()
		require.Equal(t, []string{"get alice"}, calls)
		require.Equal(t, "AlreadyExists", reason)
		require.Empty(t, e.object.Status.Account.Key, "it is not recorded any more")
	})
	t.Run("deletion", func(t *testing.T) {
		e := begin(t)
		require.NoError(t, e.Delete(t.Context(), e.object))
		calls, _, _ := e.pass()
		require.Equal(t, []string{"get alice"}, calls)
		require.Equal(t, theirs, e.api.entries["alice"])
	})
	t.Run("between observation and creation", func(t *testing.T) {
		e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) { r.IsOurs = nil })
		e.api.fail = func(call string) (before, after error) {
			if call == "create alice" {
				e.api.entries["alice"] = theirs
			}
			return nil, nil
		}
		calls, reason, _ := e.pass()
		require.Equal(t, []string{"get alice", "create alice", "get alice"}, calls)
		require.Equal(t, "AlreadyExists", reason)
		require.Empty(t, e.object.Status.Account.Key)
		require.Equal(t, theirs, e.api.entries["alice"])
	})
}
