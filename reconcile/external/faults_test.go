//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package external_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// directory is a fake of an API for explorations. It survives the operator's process.
type directory struct {
	identity external.Identity
	entries  map[string]entry // by login with ByKey, else by ID
	created  int
}

// State is compared with the run without faults. An entry that is left behind or created twice is found.
func (d *directory) State() any {
	if d.identity == external.ByKey {
		return d.entries
	}
	all := slices.Collect(maps.Values(d.entries)) // IDs and tokens differ between two runs
	for i := range all {
		all[i].Token = ""
	}
	slices.SortFunc(all, func(a, b entry) int { return len(a.Login) - len(b.Login) })
	return all
}

// directoryClient is the client of a directory in one process: faults happen at its calls.
type directoryClient struct {
	*directory
	process *reconciletest.Process
}

// key returns the key of what a reference names, and an empty one if the API cannot find it.
func (d *directory) key(ref external.Reference) string {
	if d.identity == external.ByKey || ref.ID != "" {
		return ref.String()
	}
	for id, e := range d.entries {
		if e.Token != "" && e.Token == ref.Token {
			return id
		}
	}
	return ""
}

func (c directoryClient) get(ctx context.Context, ref external.Reference) (found entry, err error) {
	err = c.process.Query(ctx, "get "+ref.Key, func() error {
		var exists bool
		if found, exists = c.entries[c.key(ref)]; !exists {
			return external.ErrNotFound
		}
		return nil
	})
	return found, err
}

func (c directoryClient) create(ctx context.Context, owner string, ref external.Reference, quota int) (id string, err error) {
	err = c.process.Effect(ctx, "create "+ref.Key, func() error {
		key := ref.Key
		if key := c.key(ref); c.identity == external.ByToken && key != "" {
			id = key
			return nil
		}
		if c.identity != external.ByKey {
			c.created++
			id = fmt.Sprintf("id-%d", c.created)
			key = id
		} else if _, exists := c.entries[key]; exists {
			return external.ErrExists
		}
		c.entries[key] = entry{Login: ref.Key, Owner: owner, Token: ref.Token, Quota: quota}
		return nil
	})
	return id, err
}

func (c directoryClient) update(ctx context.Context, ref external.Reference, quota int) error {
	return c.process.Effect(ctx, "update "+ref.Key, func() error {
		e, exists := c.entries[c.key(ref)]
		if !exists {
			return external.ErrNotFound
		}
		e.Quota = quota
		c.entries[c.key(ref)] = e
		return nil
	})
}

func (c directoryClient) remove(ctx context.Context, ref external.Reference) error {
	return c.process.Effect(ctx, "remove "+ref.Key, func() error { delete(c.entries, c.key(ref)); return nil })
}

func scenario(identity external.Identity, exists map[string]entry, actions []reconciletest.Action, edits ...func(*external.Resource[*Account, entry])) reconciletest.Scenario {
	return reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External {
			d := &directory{identity: identity, entries: maps.Clone(exists)}
			if d.entries == nil {
				d.entries = map[string]entry{}
			}
			return d
		},
		Start: func(p *reconciletest.Process) error {
			r := resource(directoryClient{p.External().(*directory), p}, identity)
			for _, e := range edits {
				e(&r)
			}
			return setUp(p.Manager(), r)
		},
		Actions: actions,
		Ignore: func(obj *unstructured.Unstructured) { // tokens and IDs differ between two runs
			for _, field := range []string{"token", "id", "since"} {
				unstructured.RemoveNestedField(obj.Object, "status", "account", field)
			}
			if identity != external.ByKey {
				unstructured.RemoveNestedField(obj.Object, "status", "conditions")
			}
		},
	}
}

// has returns a check of what is there outside of the cluster: login, owner and quota of each entry.
func has(want ...string) func(*reconciletest.Env) error {
	return func(env *reconciletest.Env) error {
		var got []string
		for _, e := range env.External.(*directory).entries {
			got = append(got, fmt.Sprintf("%s %s %d", e.Login, e.Owner, e.Quota))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("there is %q, and not %q", got, want)
		}
		return nil
	}
}

// TestSurvivesEveryFault runs scenarios that cover everything that the step reacts to, once for every fault at every point.
func TestSurvivesEveryFault(t *testing.T) {
	alice, bob := newAccount(), newAccount(func(s *AccountSpec) { s.Login = "bob" })
	bob.Name = "bob"
	edit := func(change func(*AccountSpec)) reconciletest.Action {
		return reconciletest.Change(alice, func(a *Account) { change(&a.Spec) })
	}
	quota := edit(func(s *AccountSpec) { s.Quota = 2 })
	renamed := edit(func(s *AccountSpec) { s.Login = "bob" })
	back := edit(func(s *AccountSpec) { s.Login = "alice" })
	theirs := map[string]entry{"alice": {Login: "alice", Owner: "somebody else", Quota: 7}}
	for name, tc := range map[string]struct {
		reason   string
		identity external.Identity
		exists   map[string]entry
		actions  []reconciletest.Action
	}{
		"key": {
			"a name is created, changed and deleted", external.ByKey, nil,
			[]reconciletest.Action{reconciletest.Create(alice), quota.Then(has("alice default/alice 2")), reconciletest.Delete(alice).Then(has())},
		},
		"renamed": {
			"the new one is created before the former one is deleted", external.ByKey, nil,
			[]reconciletest.Action{reconciletest.Create(alice), renamed.Then(has("bob default/alice 1")), back.Then(has("alice default/alice 1")), reconciletest.Delete(alice)},
		},
		"swapped": {
			"one of the two drops its key first", external.ByKey, nil,
			[]reconciletest.Action{
				reconciletest.Create(alice), reconciletest.Create(bob), renamed,
				reconciletest.Change(bob, func(a *Account) { a.Spec.Login = "alice" }).Then(has("alice default/bob 1", "bob default/alice 1")), reconciletest.Delete(alice), reconciletest.Delete(bob),
			},
		},
		"theirs": {
			"what is somebody else's is left alone, also by the deletion", external.ByKey, theirs,
			[]reconciletest.Action{reconciletest.Create(alice), quota, reconciletest.Delete(alice).Then(has("alice somebody else 7"))},
		},
		"adopted": {
			"on request it is taken over", external.ByKey, theirs,
			[]reconciletest.Action{reconciletest.Create(newAccount(func(s *AccountSpec) { s.Adopt = true })), quota.Then(has("alice somebody else 2"))},
		},
		"retained": {
			"it is left when the object goes", external.ByKey, nil,
			[]reconciletest.Action{reconciletest.Create(newAccount(func(s *AccountSpec) { s.Retain = true })), reconciletest.Delete(alice)},
		},
		"token": {
			"the API gives the ID, and finds what was created by a token", external.ByToken, nil,
			[]reconciletest.Action{reconciletest.Create(alice), quota, renamed.Then(has("bob default/alice 2")), reconciletest.Delete(alice).Then(has())},
		},
		"several": {
			"an object has two things, and one of them is exchanged", external.ByKey, nil,
			[]reconciletest.Action{
				reconciletest.Create(newAccount(func(s *AccountSpec) { s.Login = "alice@a,alice@b" })).Then(has("alice@a default/alice 1", "alice@b default/alice 1")),
				edit(func(s *AccountSpec) { s.Login = "alice@b,alice@c" }).Then(has("alice@b default/alice 1", "alice@c default/alice 1")), quota,
				reconciletest.Delete(alice).Then(has()),
			},
		},
		"waits": {
			"polls change nothing", external.ByKey, nil,
			[]reconciletest.Action{reconciletest.Create(alice), reconciletest.Wait(25 * time.Minute), quota},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			options := []reconciletest.Option{reconciletest.Depth(2), reconciletest.LimitPairs(20)}
			if name == "retained" {
				options = append(options, reconciletest.SkipFindings("leaves something outside"))
			}
			edits := map[string]func(*external.Resource[*Account, entry]){"several": several}
			if edit, isEdited := edits[name]; isEdited {
				reconciletest.Explore(t, scenario(tc.identity, tc.exists, tc.actions, edit), options...)
				return
			}
			reconciletest.Explore(t, scenario(tc.identity, tc.exists, tc.actions), options...)
		})
	}
}
