package external_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// try runs a pass, and returns one text with the reason and the message of Ready and the error of the pass.
func (e *env) try() (reason string) {
	e.api.calls = nil
	_, err := e.reconciler.Reconcile(e.t.Context(), ctrl.Request{NamespacedName: e.name()})
	if gone := e.Get(e.t.Context(), e.name(), e.object); gone != nil {
		return "gone"
	}
	ready, _ := conditions.Get(e.object.Status.Conditions, conditions.Ready)
	return fmt.Sprintf("%s: %s %v", ready.Reason, ready.Message, err)
}

// giveUp makes the object not want its thing any more: it changes the key, or deletes the object.
func (e *env) giveUp(rename bool) {
	e.t.Helper()
	if rename {
		e.edit(func(a *Account) { a.Spec.Login = "bob" })
		return
	}
	require.NoError(e.t, e.Delete(e.t.Context(), e.object))
}

func (e *env) later(d time.Duration) { e.clock.SetTime(e.clock.Now().Add(d)) }

// tagged is a fake API that gives IDs, and whose things have tags. A client finds a thing by the tag that contains the token, and deletes
// it by its ID.
type tagged struct {
	byID    map[string]entry
	n       int
	lose    bool
	hidden  bool
	noFind  bool // the API finds things only by ID, and uses the token as an idempotency key
	deleted []string
}

func (d *tagged) edit(r *external.Resource[*Account, entry]) {
	r.ID = func(e entry) string { return e.ID }
	r.Observe = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) (entry, error) {
		for _, f := range d.byID {
			if !d.hidden && (f.ID == ref.ID || !d.noFind && ref.ID == "" && f.Token != "" && f.Token == ref.Token) {
				return f, nil
			}
		}
		return entry{}, external.ErrNotFound
	}
	r.Create = func(_ context.Context, _ client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
		for _, f := range d.byID {
			if f.Token != "" && f.Token == ref.Token {
				return f.ID, nil
			}
		}
		d.n++
		id := fmt.Sprintf("id-%d", d.n)
		d.byID[id] = entry{ID: id, Login: ref.Key, Owner: a.Namespace + "/" + a.Name, Token: ref.Token, Quota: desired.Quota}
		if d.lose {
			return "", errors.New("lost")
		}
		return id, nil
	}
	r.Update = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference, _, desired entry) error {
		f := d.byID[ref.ID]
		f.Quota = desired.Quota
		d.byID[ref.ID] = f
		return nil
	}
	r.Delete = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) error {
		d.deleted = append(d.deleted, ref.ID)
		if ref.ID == "" {
			return errors.New("DELETE /things/ : 405")
		}
		delete(d.byID, ref.ID)
		return nil
	}
}

// TestAdmitKeepsWhatMayExist: the answer to a creation was lost, and the API does not show the thing. Then Admit returns an error. The
// record stays, because the thing may exist.
func TestAdmitKeepsWhatMayExist(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		identity external.Identity
		want     string
	}{
		"ByKey":   {"it is found by its name", external.ByKey, "Succeeded"},
		"ByToken": {"it is found by its token", external.ByToken, "Succeeded"},
		"ByID":    {"it cannot be found", external.ByID, "CreationUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			d := &tagged{byID: map[string]entry{}, lose: true}
			var admit error
			e := newEnv(t, tc.identity, func(r *external.Resource[*Account, entry]) {
				if tc.identity != external.ByKey {
					d.edit(r)
				}
				r.Grace = time.Minute
				r.Admit = func(context.Context, client.Client, *Account, external.Reference, *entry) error { return admit }
			})
			if tc.identity == external.ByKey {
				e.api.fail = func(call string) (before, after error) {
					if d.lose && call == "create alice" {
						return nil, errors.New("lost")
					}
					return nil, nil
				}
			}
			e.try()
			require.True(t, e.object.Status.Account.Pending)
			d.hidden, e.api.hidden, d.lose = true, true, false // the API is behind
			admit = reconcile.Wait("Budget", time.Second, "no budget")
			reason := e.try()
			require.Contains(t, reason, "no budget")
			d.hidden, e.api.hidden = false, false
			admit = nil
			e.later(2 * time.Minute)
			reason = e.try()
			require.Less(t, len(d.byID), 2, "it is not created twice")
			require.Contains(t, reason, tc.want)
		})
	}
}

// TestDeletionHasTheID: the answer to a creation was lost, and the thing was found by its token. The deletion gets the ID of the
// thing.
func TestDeletionHasTheID(t *testing.T) {
	for reason, rename := range map[string]bool{"the object goes": false, "the key changes": true} {
		t.Run(reason, func(t *testing.T) {
			d := &tagged{byID: map[string]entry{}, lose: true}
			e := newEnv(t, external.ByToken, d.edit)
			e.try()
			require.True(t, e.object.Status.Account.Pending)
			d.lose = false
			e.giveUp(rename)
			e.try()
			require.Equal(t, []string{"id-1"}, d.deleted)
		})
	}
}

// TestTokenIsOnlyForCreations: the API does not find things by a token, and the answer to a creation was lost. So it is not known
// whether the thing exists.
func TestTokenIsOnlyForCreations(t *testing.T) {
	for reason, rename := range map[string]bool{"the object goes": false, "the key changes": true} {
		t.Run(reason, func(t *testing.T) {
			d := &tagged{byID: map[string]entry{}, lose: true, noFind: true}
			e := newEnv(t, external.ByToken, func(r *external.Resource[*Account, entry]) {
				d.edit(r)
				r.ID = nil
			})
			e.try()
			require.True(t, e.object.Status.Account.Pending)
			d.lose = false
			e.giveUp(rename)
			reason := e.try()
			require.Contains(t, reason, "CreationUnknown", "a person has to look")
			require.Contains(t, d.byID, "id-1")
		})
	}
}

// TestExistsWithID: the API gives IDs, and refuses creations with ErrExists.
func TestExistsWithID(t *testing.T) {
	for name, identity := range map[string]external.Identity{"ByToken": external.ByToken, "ByID": external.ByID} {
		t.Run(name, func(t *testing.T) {
			taken := true
			creates := 0
			d := &tagged{byID: map[string]entry{}}
			e := newEnv(t, identity, func(r *external.Resource[*Account, entry]) {
				d.edit(r)
				create := r.Create
				r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
					creates++
					if taken {
						return "", external.ErrExists
					}
					return create(ctx, c, a, ref, desired)
				}
			})
			for range 5 {
				reason := e.try()
				require.Contains(t, reason, "AlreadyExists")
				e.later(time.Hour)
			}
			taken = false
			reason := e.try()
			require.Contains(t, reason, "Succeeded")
			require.Equal(t, 6, creates, "each pass tries once")
		})
	}
}

// TestPanicKeepsTheID: a function panics after the creation.
func TestPanicKeepsTheID(t *testing.T) {
	d := &tagged{byID: map[string]entry{}}
	broken := true
	e := newEnv(t, external.ByID, func(r *external.Resource[*Account, entry]) {
		d.edit(r)
		r.Ready = func(*Account, entry, entry) error {
			if broken {
				panic("oops")
			}
			return nil
		}
	})
	e.try()
	broken = false
	reason := e.try()
	require.Contains(t, reason, "Succeeded")
}

// TestPersonSaysThatNothingExists: the answer to a creation was lost. A person has removed the field pending from the
// status, because the thing does not exist. Then the object can be deleted.
func TestPersonSaysThatNothingExists(t *testing.T) {
	d := &tagged{byID: map[string]entry{}, lose: true}
	e := newEnv(t, external.ByID, d.edit)
	e.try()
	reason := e.try()
	require.Contains(t, reason, "CreationUnknown")
	d.byID = map[string]entry{}
	e.object.Status.Account.Pending = false // the message of the condition advises to do this
	require.NoError(t, e.Status().Update(t.Context(), e.object))
	require.NoError(t, e.Delete(t.Context(), e.object))
	reason = e.try()
	require.Equal(t, "gone", reason)
	require.Empty(t, d.deleted)
}

// TestAdoptionReplacesTheID: the object's thing was replaced by another one with another ID, and the object takes
// that one over.
func TestAdoptionReplacesTheID(t *testing.T) {
	n := 0
	byName := map[string]entry{}
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.ID = func(e entry) string { return e.ID }
		r.Adopt = func(*Account, entry) error { return nil }
		r.Observe = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) (entry, error) {
			if f, ok := byName[ref.Key]; ok {
				return f, nil
			}
			return entry{}, external.ErrNotFound
		}
		r.Create = func(_ context.Context, _ client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			n++
			id := fmt.Sprintf("id-%d", n)
			byName[ref.Key] = entry{ID: id, Login: ref.Key, Owner: a.Namespace + "/" + a.Name, Quota: desired.Quota}
			return id, nil
		}
	})
	e.try()
	byName["alice"] = entry{ID: "other", Login: "alice", Owner: "them", Quota: 1}
	e.later(time.Hour)
	e.try()
	require.True(t, e.object.Status.Account.Adopted)
	require.Equal(t, "other", e.object.Status.Account.ID)
}

// TestDeletedInGrace deletes an object while the API does not show the created thing yet.
func TestDeletedInGrace(t *testing.T) {
	for reason, identity := range map[string]external.Identity{"it has a name": external.ByKey, "it has a token": external.ByToken} {
		t.Run(reason, func(t *testing.T) {
			e := newEnv(t, identity, func(r *external.Resource[*Account, entry]) {
				r.Grace, r.DeletesAtOnce = time.Minute, true
			})
			e.try()
			e.api.hidden = true
			require.NoError(t, e.Delete(t.Context(), e.object))
			e.try()
			e.api.hidden = false
			e.later(30 * time.Second)
			e.try()
			require.Empty(t, e.api.entries)
		})
	}
}

// TestBackAndForth changes the key again and again, and all answers of the API are lost.
func TestBackAndForth(t *testing.T) {
	e := newEnv(t, external.ByKey, nil)
	lose := true
	e.api.fail = func(call string) (before, after error) {
		if lose && strings.HasPrefix(call, "create ") {
			return nil, errors.New("lost")
		}
		return nil, nil
	}
	for _, login := range []string{"alice", "bob", "carol", "alice", "bob"} {
		e.edit(func(a *Account) { a.Spec.Login = login })
		e.try()
	}
	lose = false
	for range 4 {
		e.try()
		e.later(time.Minute)
	}
	require.Len(t, e.api.entries, 1)
	require.Contains(t, e.api.entries, "bob")
}
