package external_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

// community is a group of objects that want the same things. They are sorted by age. Their names are in another order.
type community struct {
	client.Client
	t          *testing.T
	api        *recorder
	step       *external.Step[*Account, entry]
	reconciler *reconcile.Reconciler[*Account]
	objects    int
}

const succeeded = "Succeeded: " // this message is in the condition of the step

func newCommunity(t *testing.T, edit func(*external.Resource[*Account, entry])) *community {
	t.Helper()
	c := &community{t: t, api: &recorder{entries: map[string]entry{}}}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&Account{}).Build()
	r := resource(c.api, external.ByKey)
	several(&r)
	if edit != nil {
		edit(&r)
	}
	c.step = external.New(r)
	c.reconciler = reconcile.New(c.Client, reconcile.Named("account", c.step).Finalizer("test.opblocks.dev/account"))
	return c
}

func (c *community) create(name, logins string) {
	c.t.Helper()
	a := newAccount(func(s *AccountSpec) { s.Login = logins })
	c.objects++
	a.Name, a.UID, a.Generation = name, types.UID(name+"-uid"), 1
	a.CreationTimestamp = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, c.objects, 0, time.UTC))
	require.NoError(c.t, c.Create(c.t.Context(), a))
}

func (c *community) get(name string) *Account {
	c.t.Helper()
	var a Account
	require.NoError(c.t, c.Get(c.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &a))
	return &a
}

func (c *community) rename(name, logins string) {
	c.t.Helper()
	a := c.get(name)
	a.Spec.Login, a.Generation = logins, a.Generation+1
	require.NoError(c.t, c.Update(c.t.Context(), a))
}

// pass runs a pass over an object, and returns the condition Ready as text.
func (c *community) pass(name string) string {
	_, err := c.reconciler.Reconcile(context.WithoutCancel(c.t.Context()), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}})
	require.NoError(c.t, err)
	ready, _ := conditions.Get(c.get(name).Status.Conditions, conditions.Ready)
	return ready.Reason + ": " + ready.Message
}

func TestBetterClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		logins [2]string
		order  []string
		want   map[string]string
	}{
		"older": {
			"neither has it, so the younger one waits", [2]string{"alice", "alice"}, []string{"a", "z"},
			map[string]string{"a": "Claimed: alice belongs to default/z", "z": succeeded},
		},
		"group": {
			"the name belongs to one, on whatever host", [2]string{"alice@1", "alice@2"}, []string{"z", "a"},
			map[string]string{"a": "Claimed: alice belongs to default/z", "z": succeeded},
		},
		"others": {
			"they want something else", [2]string{"alice", "bob"}, []string{"a", "z"},
			map[string]string{"a": succeeded, "z": succeeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommunity(t, nil)
			c.create("z", tc.logins[0])
			c.create("a", tc.logins[1])
			got := map[string]string{}
			for _, name := range tc.order {
				got[name] = c.pass(name)
			}
			require.Equal(t, tc.want, got, tc.reason)
		})
	}
}

// TestConfirmedPrecedesOlder: an older object asks for the name of a thing that a younger object has.
func TestConfirmedPrecedesOlder(t *testing.T) {
	c := newCommunity(t, nil)
	c.create("z", "zoe")
	c.create("a", "alice")
	c.pass("a")
	c.rename("z", "alice")
	require.Equal(t, "Claimed: alice belongs to default/a", c.pass("z"))
	require.Equal(t, succeeded, c.pass("a"), "who has it keeps it")
	require.Equal(t, []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "z"}}}, c.step.Waiting(t.Context(), c.Client, c.get("a")))
	require.NoError(t, c.Delete(t.Context(), c.get("a")))
	_, err := c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}})
	require.NoError(t, err)
	require.Equal(t, succeeded, c.pass("z"))
}

// TestClaimDuringAPass: two objects want one name. While a pass reconciles the younger object, the cache does not show its record yet. The
// older object still waits.
func TestClaimDuringAPass(t *testing.T) {
	var c *community
	var during string
	c = newCommunity(t, func(r *external.Resource[*Account, entry]) {
		observe := r.Observe
		r.Observe = func(ctx context.Context, cl client.Client, a *Account, ref external.Reference) (entry, error) {
			if a.Name == "younger" && during == "" {
				during = c.pass("older")
			}
			return observe(ctx, cl, a, ref)
		}
		others := r.Others
		r.Others = func(ctx context.Context, cl client.Reader, a *Account, group string) ([]*Account, error) {
			all, err := others(ctx, cl, a, group)
			if a.Name == "younger" { // the cache does not have the older object yet
				all = slices.DeleteFunc(all, func(other *Account) bool { return other.Name == "older" })
			}
			return all, err
		}
	})
	c.create("older", "alice")
	c.create("younger", "alice")
	require.Equal(t, succeeded, c.pass("younger"))
	require.Equal(t, "Claimed: alice belongs to default/younger", during)
	require.Equal(t, "default/younger", c.api.entries["alice"].Owner)

	younger := c.get("younger")
	younger.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), younger))
	require.NoError(t, c.Delete(t.Context(), younger))
	delete(c.api.entries, "alice")
	require.Equal(t, succeeded, c.pass("older"), "nobody holds it any more")
}

func TestSwaps(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		before, after map[string]string
		want          map[string]string // the object that has each login at the end
	}{
		"two": {
			"each waits for the other", map[string]string{"a": "alice", "b": "bob"}, map[string]string{"a": "bob", "b": "alice"},
			map[string]string{"alice": "default/b", "bob": "default/a"},
		},
		"three": {
			"in a circle", map[string]string{"a": "alice", "b": "bob", "c": "carol"}, map[string]string{"a": "bob", "b": "carol", "c": "alice"},
			map[string]string{"alice": "default/c", "bob": "default/a", "carol": "default/b"},
		},
		"hosts": {
			"the names are exchanged, and the hosts differ", map[string]string{"a": "alice@1", "b": "bob@2"}, map[string]string{"a": "bob@1", "b": "alice@2"},
			map[string]string{"alice@2": "default/b", "bob@1": "default/a"},
		},
		"kept": {
			"who wants it still keeps it, and nothing is deleted that helps nobody", map[string]string{"a": "alice", "b": "bob"}, map[string]string{"a": "bob"},
			map[string]string{"alice": "default/a", "bob": "default/b"},
		},
	} {
		for _, backward := range []bool{false, true} {
			t.Run(fmt.Sprint(name, backward), func(t *testing.T) {
				c := newCommunity(t, nil)
				names := []string{"a", "b", "c"}[:len(tc.before)]
				for _, name := range names {
					c.create(name, tc.before[name])
					c.pass(name)
				}
				for name, login := range tc.after {
					c.rename(name, login)
				}
				if backward {
					slices.Reverse(names)
				}
				for range 4 {
					for _, name := range names {
						c.pass(name)
					}
				}
				got := map[string]string{}
				for login, e := range c.api.entries {
					got[login] = e.Owner
				}
				require.Equal(t, tc.want, got, tc.reason)
			})
		}
	}
}

// An object that waits for a key does not call Desired, because Desired may send a request and many objects may wait.
func TestWaitingForAKeyAsksNothing(t *testing.T) {
	asked := map[string]int{}
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		r.Desired = func(_ context.Context, _ client.Client, a *Account) (entry, error) {
			asked[a.Name]++
			return entry{Quota: a.Spec.Quota}, nil
		}
	})
	c.create("first", "alice")
	c.pass("first")
	c.create("second", "alice")
	for range 3 {
		require.Contains(t, c.pass("second"), "Claimed")
	}
	require.Equal(t, map[string]int{"first": 1}, asked)
}

// In a circle of objects, an object deletes its former thing only if it can then have the new thing.
func TestSwapThatWaits(t *testing.T) {
	missing := true
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		r.Desired = func(_ context.Context, _ client.Client, a *Account) (entry, error) {
			if a.Spec.Quota == 1 && a.Spec.Login == "bob" && missing {
				return entry{}, reconcile.Wait("SecretNotFound", 0, "there is no password")
			}
			return entry{Quota: a.Spec.Quota}, nil
		}
	})
	c.create("a", "alice")
	c.pass("a")
	b := newAccount(func(s *AccountSpec) { s.Login, s.Quota = "bob", 2 })
	b.Name, b.UID, b.Generation, b.CreationTimestamp = "b", "b-uid", 1, metav1.NewTime(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, c.Create(t.Context(), b))
	c.pass("b")
	c.rename("a", "bob")
	c.rename("b", "alice")
	for range 3 {
		require.Contains(t, c.pass("a"), "SecretNotFound")
		c.pass("b")
	}
	require.Equal(t, "default/a", c.api.entries["alice"].Owner, "it keeps what it has")
	missing = false
	for range 3 {
		c.pass("a")
		c.pass("b")
	}
	require.Equal(t, "default/b", c.api.entries["alice"].Owner)
	require.Equal(t, "default/a", c.api.entries["bob"].Owner)
}

// TestCircleIsTooLong: more objects wait for each other than one pass examines.
func TestCircleIsTooLong(t *testing.T) {
	const n = external.MaxCircle + 2
	c := newCommunity(t, nil)
	for i := range n {
		c.create(fmt.Sprint("o", i), fmt.Sprint("login", i))
		c.pass(fmt.Sprint("o", i))
	}
	for i := range n {
		c.rename(fmt.Sprint("o", i), fmt.Sprint("login", (i+1)%n))
	}
	require.Contains(t, c.pass("o0"), "more than 16 objects wait for each other")
	require.Len(t, c.api.entries, n)
}

// TestSharedKey: two objects have the same thing. An earlier version of an operator may have left them so.
func TestSharedKey(t *testing.T) {
	c := newCommunity(t, nil)
	c.create("z", "alice")
	c.create("a", "zoe")
	c.pass("z")
	c.pass("a")
	c.rename("a", "alice")
	a := c.get("a")
	a.Status.Account = c.get("z").Status.Account
	require.NoError(t, c.Status().Update(t.Context(), a))
	require.Equal(t, "Claimed: alice belongs to default/z", c.pass("a"), "the older one keeps it")
	require.NoError(t, c.Delete(t.Context(), c.get("a")))
	_, err := c.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}})
	require.NoError(t, err)
	require.Contains(t, c.api.entries, "alice", "it is not deleted with the other one")
}

// TestObserverHasNoClaim: an older object only observes. It never creates the thing, so no other object waits for it.
func TestObserverHasNoClaim(t *testing.T) {
	c := newCommunity(t, func(r *external.Resource[*Account, entry]) {
		r.ObserveOnly = func(a *Account) bool { return a.Name == "observer" }
	})
	c.create("observer", "alice")
	c.create("owner", "alice")
	require.Equal(t, succeeded, c.pass("owner"))
	require.Equal(t, succeeded, c.pass("observer"))
}
