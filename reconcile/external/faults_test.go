//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package external_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// directory is the API of these tests. Its things are accounts with a quota.
type directory = fakeapi.API[int]

// directoryClient is the client of the directory in one process. Faults occur at its calls.
type directoryClient struct {
	*fakeapi.Client[int]
	identity external.Identity
}

// explain translates an error of the API into an error of package external.
func explain(err error) error {
	switch fakeapi.StatusOf(err) {
	case http.StatusNotFound:
		return external.ErrNotFound
	case http.StatusConflict:
		return external.ErrExists
	case http.StatusTooManyRequests:
		return external.Throttled(time.Second, err)
	case http.StatusServiceUnavailable:
		return external.Unreachable(err)
	}
	return err
}

// id returns the ID of the thing that a reference names, or "" if the API cannot find the thing.
func (c directoryClient) id(ctx context.Context, ref external.Reference) (string, error) {
	if c.identity == external.ByKey || ref.ID != "" {
		return ref.String(), nil
	}
	all, err := c.List(ctx)
	for _, t := range all {
		if t.Token != "" && t.Token == ref.Token {
			return t.ID, nil
		}
	}
	return "", err
}

func (c directoryClient) get(ctx context.Context, ref external.Reference) (entry, error) {
	id, err := c.id(ctx, ref)
	if err != nil || id == "" {
		return entry{}, cmp.Or(explain(err), external.ErrNotFound)
	}
	t, err := c.Get(ctx, id)
	return entry{ID: t.ID, Login: t.Name, Owner: t.Owner, Token: t.Token, Quota: t.Fields}, explain(err)
}

func (c directoryClient) create(ctx context.Context, owner string, ref external.Reference, quota int) (id string, err error) {
	made, err := c.Create(ctx, fakeapi.Thing[int]{Name: ref.Key, Owner: owner, Token: ref.Token, Fields: quota})
	if c.identity == external.ByKey {
		made.ID = ""
	}
	return made.ID, explain(err)
}

func (c directoryClient) update(ctx context.Context, ref external.Reference, quota int) error {
	id, err := c.id(ctx, ref)
	if err != nil {
		return explain(err)
	}
	return explain(c.Update(ctx, fakeapi.Thing[int]{ID: id, Fields: quota}))
}

func (c directoryClient) remove(ctx context.Context, ref external.Reference) error {
	id, err := c.id(ctx, ref)
	if err == nil && id != "" {
		err = c.Delete(ctx, id)
	}
	if err = explain(err); errors.Is(err, external.ErrNotFound) {
		return nil
	}
	return err
}

func scenario(identity external.Identity, existing, others []fakeapi.Thing[int], actions []reconciletest.Action, edits ...func(*external.Resource[*Account, entry])) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External {
			return &directory{Kind: "account", GivesIDs: identity != external.ByKey, Existing: existing, Others: others}
		},
		Start: func(p *reconciletest.Process) error {
			r := resource(directoryClient{p.External().(*directory).Client(p), identity}, identity)
			r.Grace = 15 * time.Second // the API shows a created thing after up to 10 s
			if identity == external.ByToken {
				r.ID = func(e entry) string { return e.ID }
			}
			for _, edit := range edits {
				edit(&r)
			}
			return setUp(p.Manager(), r)
		},
		Actions: actions,
		Horizon: 2 * time.Minute,                                                                        // shorter than the interval of polls, so no poll repairs what a fault has broken; the API may still be behind
		Ignore:  reconciletest.Ignore{Fields: map[string][]string{"Account": {"status.account.token"}}}, // random
	}
}

// has returns a function that checks which accounts exist. Each account is written as login, owner and quota.
func has(want ...string) func(*reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var got []string
		for _, t := range env.External.(*directory).Things() {
			got = append(got, fmt.Sprintf("%s %s %d", t.Name, t.Owner, t.Fields))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("there is %q, and not %q", got, want)
		}
		return nil
	}
}

// TestSurvivesEveryFault runs scenarios with everything to which the step reacts. It runs each scenario with every
// fault at every point, except that the faults at the creation and the deletion of an account that has nothing special are tried
// only in the scenario "key".
func TestSurvivesEveryFault(t *testing.T) {
	alice, bob := newAccount(), newAccount(func(s *AccountSpec) { s.Login = "bob" })
	bob.Name = "bob"
	edit := func(change func(*AccountSpec)) reconciletest.Action {
		return reconciletest.Change(alice, func(a *Account) { change(&a.Spec) })
	}
	quota := edit(func(s *AccountSpec) { s.Quota = 2 })
	renamed := edit(func(s *AccountSpec) { s.Login = "bob" })
	back := edit(func(s *AccountSpec) { s.Login = "alice" })
	ready := reconciletest.Ready(alice)
	created, deleted := reconciletest.Create(alice).WithoutFaults(), reconciletest.Delete(alice).WithoutFaults()
	theirs := []fakeapi.Thing[int]{{Name: "alice", Owner: "somebody else", Fields: 7}}
	for name, tc := range map[string]struct {
		reason   string
		identity external.Identity
		existing []fakeapi.Thing[int]
		others   []fakeapi.Thing[int]
		actions  []reconciletest.Action
	}{
		"key": {
			"a name is created, changed and deleted", external.ByKey, nil, nil,
			[]reconciletest.Action{reconciletest.Create(alice), quota.Then(has("alice default/alice 2")), reconciletest.Delete(alice).Then(has())},
		},
		"renamed": {
			"the new one is created before the former one is deleted", external.ByKey, nil, nil,
			[]reconciletest.Action{created, renamed.Then(has("bob default/alice 1")), back.Then(has("alice default/alice 1")), deleted},
		},
		"swapped": {
			"one of the two drops its key first", external.ByKey, nil, nil,
			[]reconciletest.Action{
				created, reconciletest.Create(bob).WithoutFaults(), renamed,
				reconciletest.Change(bob, func(a *Account) { a.Spec.Login = "alice" }).Then(has("alice default/bob 1", "bob default/alice 1")), deleted, reconciletest.Delete(bob).WithoutFaults(),
			},
		},
		"taken": {
			"the new name is somebody else's, and the former one is still the object's", external.ByKey, nil, []fakeapi.Thing[int]{{Name: "bob", Owner: "somebody else", Fields: 7}},
			[]reconciletest.Action{created, renamed, back.Then(ready), quota.Then(has("alice default/alice 2", "bob somebody else 7")), deleted.Then(has("bob somebody else 7"))},
		},
		"theirs": {
			"what is somebody else's is left alone, also by the deletion", external.ByKey, nil, theirs,
			[]reconciletest.Action{reconciletest.Create(alice), quota, reconciletest.Delete(alice).Then(has("alice somebody else 7"))},
		},
		"replaced": {
			"somebody has deleted ours, and somebody else has created another one of the name", external.ByKey, nil, nil,
			[]reconciletest.Action{
				created, reconciletest.Wait(2 * time.Minute), // a new thing is deleted even if the API does not show it
				reconciletest.DoExternal("replace it", func(d *directory) error {
					_ = d.Delete(context.Background(), "alice") // if a fault has prevented the creation, Delete returns an error
					_, err := d.CreateForOthers(context.Background(), fakeapi.Thing[int]{Name: "alice", Owner: "somebody else", Fields: 7})
					return err
				}), quota, reconciletest.Delete(alice).Then(has("alice somebody else 7")),
			},
		},
		"adopted": {
			"on request it is taken over", external.ByKey, theirs, nil,
			[]reconciletest.Action{reconciletest.Create(newAccount(func(s *AccountSpec) { s.Adopt = true })), quota.Then(has("alice somebody else 2"))},
		},
		"retained": {
			"it is left when the object goes", external.ByKey, nil, nil,
			[]reconciletest.Action{reconciletest.Create(newAccount(func(s *AccountSpec) { s.Retain = true })).WithoutFaults(), reconciletest.Delete(alice)},
		},
		"token": {
			"the API gives the ID, and finds what was created by a token", external.ByToken, nil, nil,
			[]reconciletest.Action{reconciletest.Create(alice), quota, renamed.Then(has("bob default/alice 2")), reconciletest.Delete(alice).Then(has())},
		},
		"several": {
			"an object has two things, and one of them is exchanged", external.ByKey, nil, nil,
			[]reconciletest.Action{
				reconciletest.Create(newAccount(func(s *AccountSpec) { s.Login = "alice@a,alice@b" })).Then(has("alice@a default/alice 1", "alice@b default/alice 1")),
				edit(func(s *AccountSpec) { s.Login = "alice@b,alice@c" }).Then(has("alice@b default/alice 1", "alice@c default/alice 1")), quota,
				reconciletest.Delete(alice).Then(has()),
			},
		},
		"waits": {
			"polls change nothing", external.ByKey, nil, nil,
			[]reconciletest.Action{created, reconciletest.Wait(25 * time.Minute), quota},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			var edits []func(*external.Resource[*Account, entry])
			if name == "several" {
				edits = append(edits, several)
			}
			s := scenario(tc.identity, tc.existing, tc.others, tc.actions, edits...)
			s.Options.Pairs = 20
			switch name {
			case "retained":
				s.Options.SkipFindings = []reconciletest.FindingKind{reconciletest.Findings.LeavesOutside}
			case "replaced": // after a stale answer, the record in the status may be empty, which changes nothing outside
				s.Options.SkipFindings = []reconciletest.FindingKind{reconciletest.Findings.DoesNotSurvive}
			}
			if name == "swapped" { // a process that is not the leader any more may delete the other object's thing with this key; a poll creates it again
				s.Horizon = 0
			}
			if name == "theirs" || name == "replaced" {
				s.Unready = []reconciletest.Unready{{Object: alice, Reason: "AlreadyExists"}}
			}
			reconciletest.Explore(t, s)
		})
	}
}
