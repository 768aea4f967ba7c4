package external_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TestSuccessorIsLeftAlone: somebody has deleted our thing, and there is another thing with its key. The step does
// not change that one.
func TestSuccessorIsLeftAlone(t *testing.T) {
	theirs := entry{Login: "alice", Owner: "somebody else", Quota: 7}
	adopt := func(*Account, entry) error { return nil }
	for name, tc := range map[string]struct {
		reason string
		edit   func(*external.Resource[*Account, entry])
		calls  []string
		want   string // the reason
		shown  []int  // the states that were passed to Observed
	}{
		"marked":       {"it has not our mark", func(*external.Resource[*Account, entry]) {}, []string{"get alice"}, "AlreadyExists", []int{1}},
		"taken over":   {"Adopt accepts it", func(r *external.Resource[*Account, entry]) { r.Adopt = adopt }, []string{"get alice", "update alice", "get alice"}, "Succeeded", []int{1, 7, 1}},
		"without mark": {"nothing tells whose it is", func(r *external.Resource[*Account, entry]) { r.MarksOnlyPending = true }, []string{"get alice", "update alice", "get alice"}, "Succeeded", []int{1, 7, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var shown []int
			e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
				r.Observed = func(_ *Account, state entry) { shown = append(shown, state.Quota) }
				tc.edit(r)
			})
			e.pass()
			e.api.entries["alice"] = theirs
			e.clock.SetTime(e.clock.Now().Add(time.Hour))
			calls, reason, _ := e.pass()
			require.Equal(t, tc.calls, calls, tc.reason)
			require.Equal(t, tc.want, reason)
			require.Equal(t, tc.shown, shown)
		})
	}
}

// TestMarkIsPutOnAgain: IsOurs recognizes our thing by a mark, and somebody has removed the mark. Until the mark is back, the
// step does not change the thing.
func TestMarkIsPutOnAgain(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	e.pass()
	ours := e.api.entries["alice"]
	e.api.entries["alice"] = entry{Login: "alice"}
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	_, reason, _ := e.pass()
	require.Equal(t, "AlreadyExists", reason)
	e.api.entries["alice"] = ours
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	_, reason, _ = e.pass()
	require.Equal(t, "Succeeded", reason, "the record still says that it was created here")
}

// TestAdoptedIsNotAsked: a thing was taken over. It never got the mark by which IsOurs finds that a thing is ours, so
// the step does not call IsOurs for it.
func TestAdoptedIsNotAsked(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Adopt = func(a *Account, _ entry) error {
			if a.Spec.Adopt {
				return nil
			}
			return external.ErrExists
		}
	})
	e.api.entries["alice"] = entry{Login: "alice", Owner: "somebody else", Quota: 1}
	e.edit(func(a *Account) { a.Spec.Adopt = true })
	_, reason, _ := e.pass()
	require.Equal(t, "Succeeded", reason)
	require.True(t, e.object.Status.Account.Adopted)
	e.edit(func(a *Account) { a.Spec.Adopt = false })
	_, reason, _ = e.pass()
	require.Equal(t, "Succeeded", reason, "the request is needed only once")
	require.NoError(t, e.Delete(t.Context(), e.object))
	e.pass()
	require.Empty(t, e.api.entries)
}

// TestOthersAreNotShown: somebody else's thing has the key. The status of our object must not show what that thing
// contains.
func TestOthersAreNotShown(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Observed = func(*Account, entry) { t.Error("Observed is told of what is somebody else's") }
	})
	e.api.entries["alice"] = entry{Login: "alice", Owner: "somebody else", Quota: 7}
	_, reason, _ := e.pass()
	require.Equal(t, "AlreadyExists", reason)
}

// TestFormerIsSettled: the answer to a creation was lost, and then the object gets another key, which belongs to somebody else. The
// step records whether the creation had an effect. It does not delete that thing before the new one exists.
func TestFormerIsSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		left        *entry // the thing with the former key; nil if it does not exist
		wantPending bool
		want        int // the number of things with former keys in the record
	}{
		"ours":    {"it was created", &entry{Login: "alice", Owner: "default/alice"}, false, 1},
		"theirs":  {"somebody else was faster", &entry{Login: "alice", Owner: "somebody else"}, false, 0},
		"nothing": {"it was not created", nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, nil)
			e.api.entries["bob"] = entry{Login: "bob", Owner: "somebody else"}
			if tc.left != nil {
				e.api.entries["alice"] = *tc.left
			}
			e.edit(func(a *Account) { a.Spec.Login = "bob" })
			e.object.Status.Account = external.Record{Reference: external.Reference{Key: "alice", Pending: true}}
			require.NoError(t, e.Status().Update(t.Context(), e.object))
			_, reason, _ := e.pass()
			require.Equal(t, "AlreadyExists", reason)
			former := e.object.Status.Account.Former
			require.Len(t, former, tc.want, tc.reason)
			if tc.want > 0 {
				require.False(t, former[0].Pending)
			}
		})
	}
}

// TestStatusIsWrittenInTheEnd: a pass observes a change, and its status write fails. The changes that Observed makes must be written
// later.
func TestStatusIsWrittenInTheEnd(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Differs = func(external.Reference, entry, entry) bool { return false }
		r.Observed = func(a *Account, state entry) { a.Status.Login = state.Token }
	})
	isRefused := false
	inner, _ := e.Client.(client.WithWatch)
	e.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if isRefused {
				return errors.New("refused")
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, options...)
		},
	})
	e.restart()
	e.pass()
	changed := e.api.entries["alice"]
	changed.Token = "chosen"
	e.api.entries["alice"] = changed
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	isRefused = true
	calls, _, _ := e.pass()
	require.Equal(t, []string{"get alice"}, calls)
	isRefused = false
	calls, _, _ = e.pass()
	require.Equal(t, []string{"get alice"}, calls, "it is observed again")
	require.Equal(t, "chosen", e.object.Status.Login)
	calls, _, _ = e.pass()
	require.Empty(t, calls)
}

// TestStaleAfterAnUpdate: the API still shows the old state after an update. The step observes the thing one more
// time, and not again and again.
func TestStaleAfterAnUpdate(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Observed = func(a *Account, state entry) { a.Status.Login = strconv.Itoa(state.Quota) }
	})
	e.pass()
	former := e.api.entries["alice"]
	isBehind := true
	e.api.fail = func(call string) (before, after error) {
		if isBehind && call == "get alice" {
			e.api.entries["alice"] = former
		}
		return nil, nil
	}
	e.edit(func(a *Account) { a.Spec.Quota = 2 })
	_, reason, after := e.pass()
	require.Equal(t, "Succeeded", reason)
	require.InDelta(t, 5, after.Seconds(), 1)
	calls, _, _ := e.pass()
	require.Empty(t, calls, "it is not yet time")
	e.clock.SetTime(e.clock.Now().Add(5 * time.Second))
	calls, _, after = e.pass()
	require.Equal(t, []string{"get alice", "update alice", "get alice"}, calls)
	require.Greater(t, after, 9*time.Minute, "an API that never shows it is not written to again and again")
	e.clock.SetTime(e.clock.Now().Add(time.Minute))
	calls, _, _ = e.pass()
	require.Empty(t, calls)
	isBehind = false
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	e.pass()
	require.Equal(t, "2", e.object.Status.Login)
}

// TestNewIsDeletedAlthoughNotShown deletes objects whose things the API does not show. One thing was created just now, and the other
// one long ago.
func TestNewIsDeletedAlthoughNotShown(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		age    time.Duration
		want   []string
	}{
		"new": {"the API may be behind", 59 * time.Second, []string{"get alice", "remove alice", "get alice"}},
		"old": {"it is gone, and what appears there is somebody else's", time.Minute, []string{"get alice"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, external.ByKey, nil)
			e.pass()
			e.clock.SetTime(e.clock.Now().Add(tc.age))
			e.api.hidden = true
			require.NoError(t, e.Delete(t.Context(), e.object))
			calls, _, _ := e.pass()
			require.Equal(t, tc.want, calls, tc.reason)
			require.Error(t, e.Get(t.Context(), e.name(), e.object), "the object is gone")
		})
	}
}

// TestMarkOfAnID: the API gives IDs, so our thing cannot be confused with another one. Somebody has removed the mark by which IsOurs
// finds that the thing is ours. It is still treated as ours.
func TestMarkOfAnID(t *testing.T) {
	e := newEnv(t, external.ByID, nil)
	e.pass()
	unmarked := e.api.entries["id-1"]
	unmarked.Owner = ""
	e.api.entries["id-1"] = unmarked
	e.clock.SetTime(e.clock.Now().Add(time.Hour))
	_, reason, _ := e.pass()
	require.Equal(t, "Succeeded", reason)
}

// TestRefusedIsRecorded: the API refuses a spec for good. Later passes have a low priority, since nobody waits for
// them.
func TestRefusedIsRecorded(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Update = func(context.Context, client.Client, *Account, external.Reference, entry, entry) error {
			return external.Refused("TooLarge", errors.New("the quota is too large"))
		}
	})
	e.pass()
	e.edit(func(a *Account) { a.Spec.Quota = 1000 })
	_, reason, _ := e.pass()
	require.Equal(t, "TooLarge", reason)
	require.Equal(t, e.object.Generation, e.object.Status.Account.Generation)
}
