package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// rivals returns DatabaseUsers of user names, in the order of their creation, and a Secret for each with its name as the password.
func rivals(adopt bool, userByName ...[2]string) []client.Object {
	var all []client.Object
	for i, pair := range userByName {
		u, s := sample(), secret(pair[0])
		u.Name, u.UID, u.Spec.User, u.Spec.Adopt = pair[0], types.UID(pair[0]+"-uid"), pair[1], adopt
		u.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Second))
		s.Name, u.Spec.Password.Name = pair[0], pair[0]
		all = append(all, u, s)
	}
	return all
}

// gate is a database whose first lookup waits.
type gate struct {
	accounts.Database
	passed           atomic.Bool
	entered, release chan struct{}
}

func (g *gate) Lookup(ctx context.Context, a accounts.Account) (*accounts.State, error) {
	if g.passed.CompareAndSwap(false, true) {
		close(g.entered)
		<-g.release
	}
	return g.Database.Lookup(ctx, a)
}

// TestClaimDuringAPass has two DatabaseUsers that may adopt accounts of the same name. While a pass over the first one works, neither
// the status nor the database shows it. The second one waits all the same, though it is older.
func TestClaimDuringAPass(t *testing.T) {
	for name, host := range map[string]string{"same account": "%", "same name, more specific host": "10.%"} {
		t.Run(name, func(t *testing.T) { testClaimDuringAPass(t, accounts.Account{User: "alice", Host: host}) })
	}
}

func testClaimDuringAPass(t *testing.T, account accounts.Account) {
	both := rivals(true, [2]string{"older", "alice"}, [2]string{"younger", "alice"})
	both[2].(*userv1alpha1.DatabaseUser).Spec.Hosts = []string{account.Host}
	h := newHarness(t, both...)
	require.NoError(t, h.Delete(t.Context(), &userv1alpha1.DatabaseUser{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "older"}}))
	require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
	g := &gate{Database: h.database, entered: make(chan struct{}), release: make(chan struct{})}
	h.start(g)
	done := make(chan error)
	go func() {
		_, err := h.reconciler.Reconcile(context.WithoutCancel(t.Context()), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "younger"}})
		done <- err
	}()
	<-g.entered
	require.NoError(t, h.Create(t.Context(), rivals(true, [2]string{"older", "alice"})[0])) // the cache shows it only now
	h.database.Calls()
	ready := h.reconcileNamed(t, "older")
	assert.Equal(t, "AccountClaimed", ready.Reason, ready.Message)
	assert.Equal(t, "DatabaseUser default/younger has the better claim to the user name", ready.Message)
	assert.Empty(t, h.database.Calls())
	close(g.release)
	require.NoError(t, <-done)
	assert.Equal(t, "younger", h.database.Password(account))
	assert.Equal(t, "AccountClaimed", h.reconcileNamed(t, "older").Reason)

	// Somebody removes the one that holds the account, with its finalizer.
	var younger userv1alpha1.DatabaseUser
	require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "younger"}, &younger))
	younger.Finalizers = nil
	require.NoError(t, h.Update(t.Context(), &younger))
	require.NoError(t, h.Delete(t.Context(), &younger))
	assert.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, "older").Reason, "nobody holds the account any more")
	assert.Equal(t, "older", h.database.Password(alice))
}

// owners is a database that knows whose password each account has. Whoever drops an account, somebody else creates it at once, so that
// it is to be adopted.
type owners struct {
	accounts.Database
	mu       sync.Mutex
	byName   map[accounts.Account]accounts.Password
	problems []string
}

func (o *owners) own(a accounts.Account, p accounts.Password) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if had, ok := o.byName[a]; ok && had != p {
		o.problems = append(o.problems, fmt.Sprintf("%s of %s is taken by %s", a, string(had), string(p)))
	}
	o.byName[a] = p
}

func (o *owners) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	err := o.Database.Create(ctx, a, p, s)
	if err == nil {
		o.own(a, p)
	}
	return err
}

func (o *owners) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	o.own(a, p)
	return o.Database.SetPassword(ctx, a, p)
}

func (o *owners) Drop(ctx context.Context, a accounts.Account) error {
	o.mu.Lock()
	delete(o.byName, a)
	o.mu.Unlock()
	if err := o.Database.Drop(ctx, a); err != nil {
		return err
	}
	return o.Database.Create(ctx, a, "theirs", accounts.Settings{})
}

func (o *owners) Lookup(ctx context.Context, a accounts.Account) (*accounts.State, error) {
	defer runtime.Gosched() // others run between the decision and the change
	return o.Database.Lookup(ctx, a)
}

// TestParallelPasses runs passes over rivals at the same time while they are renamed, so that the race detector sees what they
// share: no account of one is ever taken by another one. TestClaimDuringAPass has the order in which that would happen without claims.
func TestParallelPasses(t *testing.T) {
	const rounds, workers, passes = 2, 4, 30
	users := []string{"alice", "bob", "carol"}
	names := []string{"a", "b", "c", "d", "e", "f"}
	for round := range rounds {
		var pairs [][2]string
		for i, name := range names {
			pairs = append(pairs, [2]string{name, users[i%len(users)]})
		}
		h := newHarness(t, rivals(true, pairs...)...)
		for _, user := range users {
			require.NoError(t, h.database.Create(t.Context(), accounts.Account{User: user, Host: "%"}, "theirs", accounts.Settings{}))
		}
		database := &owners{Database: h.database, byName: map[accounts.Account]accounts.Password{}}
		h.start(database)
		busy := make([]sync.Mutex, len(names)) // a controller never runs two passes over one object
		var working sync.WaitGroup
		for worker := range workers {
			random := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			working.Go(func() {
				for range passes {
					i := random.IntN(len(names))
					if !busy[i].TryLock() {
						continue
					}
					key := types.NamespacedName{Namespace: "default", Name: names[i]}
					if random.IntN(6) == 0 {
						var u userv1alpha1.DatabaseUser
						if h.Get(t.Context(), key, &u) == nil {
							u.Spec.User, u.Generation = users[random.IntN(len(users))], u.Generation+1
							_ = h.Update(t.Context(), &u) // or the next time
						}
					}
					_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
					assert.NoError(t, err)
					busy[i].Unlock()
				}
			})
		}
		working.Wait()
		require.Empty(t, database.problems, "round %d", round)

		reasons := map[string]string{}
		for range 2 * len(names) { // until all have come to rest
			for _, name := range names {
				reasons[name] = h.reconcileNamed(t, name).Reason
			}
		}
		require.Empty(t, database.problems, "round %d", round)
		var list userv1alpha1.DatabaseUserList
		require.NoError(t, h.List(t.Context(), &list))
		has := map[string]string{}
		for _, u := range list.Items {
			if reasons[u.Name] != "ProvisionSucceeded" {
				assert.Equal(t, "AccountClaimed", reasons[u.Name], "round %d: %s", round, u.Name)
				continue
			}
			assert.Empty(t, has[u.Spec.User], "round %d: %s belongs to one", round, u.Spec.User)
			has[u.Spec.User] = u.Name
			assert.Equal(t, u.Name, h.database.Password(accounts.Account{User: u.Spec.User, Host: "%"}), "round %d", round)
		}
	}
}

// TestSwappedNames checks that DatabaseUsers whose names were exchanged get them, whichever is reconciled first.
func TestSwappedNames(t *testing.T) {
	tests := map[string]struct {
		reason string
		before [][2]string
		after  map[string]string
		want   map[string]string // the user name in the status, if it differs from after
	}{
		"Swap":  {"each waits for the other", [][2]string{{"a", "alice"}, {"b", "bob"}}, map[string]string{"a": "bob", "b": "alice"}, nil},
		"Three": {"in a circle", [][2]string{{"a", "alice"}, {"b", "bob"}, {"c", "carol"}}, map[string]string{"a": "bob", "b": "carol", "c": "alice"}, nil},
		"YoungerWants": {"one more waits for a name of the circle", [][2]string{{"a", "alice"}, {"b", "bob"}, {"c", "carol"}},
			map[string]string{"a": "bob", "b": "alice", "c": "bob"}, map[string]string{"c": "carol"}},
		"OlderWants": {"it gets the name first, and the circle stays open", [][2]string{{"a", "dora"}, {"b", "bob"}, {"c", "carol"}},
			map[string]string{"a": "bob", "b": "carol", "c": "bob"}, map[string]string{"b": "", "c": "carol"}},
		"Kept": {"who keeps a name keeps it, and nothing is dropped that helps nobody", [][2]string{{"a", "alice"}, {"b", "bob"}},
			map[string]string{"a": "bob", "b": "bob"}, map[string]string{"a": "alice"}},
	}
	for name, tc := range tests {
		for _, backward := range []bool{false, true} {
			t.Run(fmt.Sprint(name, backward), func(t *testing.T) {
				h := newHarness(t, rivals(false, tc.before...)...)
				for _, pair := range tc.before {
					require.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, pair[0]).Reason)
				}
				var names []string
				for _, pair := range tc.before {
					names = append(names, pair[0])
					var u userv1alpha1.DatabaseUser
					require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: pair[0]}, &u))
					u.Spec.User, u.Generation = tc.after[pair[0]], u.Generation+1
					require.NoError(t, h.Update(t.Context(), &u))
				}
				if backward {
					slices.Reverse(names)
				}
				for range 4 {
					for _, name := range names {
						h.reconcileNamed(t, name)
					}
				}
				for _, pair := range tc.before {
					var u userv1alpha1.DatabaseUser
					require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: pair[0]}, &u))
					want, isOther := tc.want[u.Name]
					if !isOther {
						want = u.Spec.User
					}
					assert.Equal(t, want, u.Status.User, "%s: %s", u.Name, tc.reason)
					c, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
					if want != u.Spec.User {
						assert.Equal(t, "AccountClaimed", c.Reason)
						continue
					}
					assert.Equal(t, "ProvisionSucceeded", c.Reason, c.Message)
					assert.Equal(t, u.Name, h.database.Password(accounts.Account{User: want, Host: "%"}))
				}
			})
		}
	}
}
