package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

var local = accounts.Account{User: "alice", Host: "127.0.0.1"}

// TestNamesakes has other accounts on the server while a DatabaseUser asks for alice@127.0.0.1. The server would let those who
// log in as alice from there in as this account, with the privileges that the other accounts have in databases.
func TestNamesakes(t *testing.T) {
	recorded := func(status userv1alpha1.DatabaseUserStatus) func(*userv1alpha1.DatabaseUser) {
		return func(u *userv1alpha1.DatabaseUser) {
			u.Finalizers, u.Status = []string{controller.Finalizer}, status
			u.Status.User, u.Status.Target = "alice", "Shop"
		}
	}
	tests := map[string]struct {
		reason  string
		account accounts.Account // that exists
		mark    accounts.Mark
		powers  string
		edit    func(*userv1alpha1.DatabaseUser)
		others  []client.Object
		want    string
		says    string // part of the condition's message
	}{
		"Stranger": {
			reason: "its logins and its privileges are somebody else's", account: alice, want: "AccountExists",
			says: "account 'alice'@'127.0.0.1' would take the logins and get the privileges of 'alice'@'%', of the same user name, which was not made for this DatabaseUser",
		},
		"StrangerAdopted": {
			reason: "whoever sets spec.adopt gets its privileges in databases", account: alice,
			edit: func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true }, want: "ProvisionSucceeded",
		},
		"PowerfulStrangerAdopted": {
			reason: "a replica that logs in from there would break", account: alice, powers: "REPLICATION SLAVE on *.*",
			edit: func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true }, want: "AccountExists",
			says: "account 'alice'@'127.0.0.1' would have privileges of others, beyond the use of databases: REPLICATION SLAVE on *.* of 'alice'@'%'; it is not created",
		},
		"LessSpecific": {
			reason: "which host is more specific does not matter", account: accounts.Account{User: "alice", Host: "127.0.0.%"}, want: "AccountExists",
			says: "'alice'@'127.0.0.%'",
		},
		"AnotherCase": {
			reason: "the case of user names matters", account: accounts.Account{User: "Alice", Host: "%"}, want: "ProvisionSucceeded",
		},
		"OfAnother": {
			reason: "the name belongs to the other DatabaseUser", account: alice, want: "AccountClaimed",
			others: rivals(false, [2]string{"other", "alice"}), says: "DatabaseUser default/other has the better claim to the user name",
		},
		"OfAnotherAdopted": {
			reason: "spec.adopt does not take from another DatabaseUser", account: alice, want: "AccountClaimed",
			others: rivals(false, [2]string{"other", "alice"}), edit: func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true },
			says: "DatabaseUser default/other has the better claim to the user name",
		},
		"Confirmed": {
			reason: "it is of this DatabaseUser, whose hosts have changed", account: alice, want: "ProvisionSucceeded",
			edit: recorded(userv1alpha1.DatabaseUserStatus{Hosts: []string{"%"}, PasswordVersion: "secret-uid/1"}),
		},
		"Marked": {
			reason: "it was created for this DatabaseUser just before the process ended", account: alice, mark: ourMark, want: "ProvisionSucceeded",
			edit: recorded(userv1alpha1.DatabaseUserStatus{Hosts: []string{"%"}, PendingHosts: []string{"%"}}),
		},
		"PendingWithoutMark": {
			reason: "somebody else has created it since", account: alice, want: "AccountExists",
			edit: recorded(userv1alpha1.DatabaseUserStatus{Hosts: []string{"%"}, PendingHosts: []string{"%"}}), says: "'alice'@'%'",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := sample()
			u.Spec.Hosts, u.CreationTimestamp = []string{"127.0.0.1"}, metav1.NewTime(noon.Add(time.Hour))
			if tc.edit != nil {
				tc.edit(u)
			}
			h := newHarness(t, append(tc.others, u, secret("swordfish"))...)
			if tc.others != nil {
				require.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, tc.others[0].GetName()).Reason)
			} else {
				require.NoError(t, h.database.Create(t.Context(), tc.account, "theirs", accounts.Settings{Mark: tc.mark}))
			}
			if tc.powers != "" {
				h.database.SetPowers(tc.account, tc.powers)
			}
			h.database.Calls()
			ready, calls := h.reconcile(t)
			assert.Equal(t, tc.want, ready.Reason, "%s: %s", tc.reason, ready.Message)
			assert.Contains(t, ready.Message, tc.says)
			if tc.want == "ProvisionSucceeded" {
				assert.Equal(t, "swordfish", h.database.Password(local))
				return
			}
			for _, call := range calls {
				assert.Regexp(t, "^(Lookup|AccountsOf|Powers) ", call, "nothing is changed")
			}
			var after userv1alpha1.DatabaseUser
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(u), &after))
			assert.NotContains(t, after.Status.Hosts, "127.0.0.1", "it is not recorded, so that no deletion drops it")
		})
	}
}

// TestNamesakesOfUnknownOwners has an account of the same user name on the server, while the DatabaseUsers that it may belong to cannot be listed.
func TestNamesakesOfUnknownOwners(t *testing.T) {
	u := sample()
	u.Spec.Hosts, u.Spec.Adopt = []string{"127.0.0.1"}, true
	h := newHarness(t, u, secret("swordfish"))
	require.NoError(t, h.database.Create(t.Context(), alice, "theirs", accounts.Settings{}))
	fails := false
	h.database.Fail = func(method string) error {
		fails = fails || method == "AccountsOf" // the namesakes are known, and whose they are comes next
		return nil
	}
	h.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if fails {
				return errors.New("the cache does not answer")
			}
			return c.List(ctx, list, opts...)
		},
	})
	h.start(h.database)
	key := client.ObjectKeyFromObject(u)
	_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), key, u))
	ready, _ := controller.Conditions.Get(u.Status.Conditions, conditions.Ready)
	assert.Equal(t, "ProvisionFailed", ready.Reason)
	assert.Contains(t, ready.Message, "the cache does not answer")
	assert.Equal(t, []string{"'alice'@'%'"}, h.database.Accounts(), "nothing is created")
}

// TestNameIsShared has two DatabaseUsers that an earlier version of the operator has let share a name: both are kept as specified,
// and neither gets more accounts of the name.
func TestNameIsShared(t *testing.T) {
	all := rivals(true, [2]string{"a", "alice"}, [2]string{"b", "alice"})
	hosts := map[string]string{"a": "%", "b": "127.0.0.1"}
	for i := range 2 {
		u := all[2*i].(*userv1alpha1.DatabaseUser)
		u.Spec.Hosts, u.Finalizers = []string{hosts[u.Name]}, []string{controller.Finalizer}
		u.Status = userv1alpha1.DatabaseUserStatus{User: "alice", Hosts: u.Spec.Hosts, Target: "Shop", PasswordVersion: "an earlier one"}
	}
	h := newHarness(t, all...)
	for name, host := range hosts {
		a := accounts.Account{User: "alice", Host: host}
		require.NoError(t, h.database.Create(t.Context(), a, "an earlier one", accounts.Settings{}))
		ready := h.reconcileNamed(t, name)
		assert.Equal(t, "ProvisionSucceeded", ready.Reason, ready.Message)
		assert.Equal(t, name, h.database.Password(a))
	}
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		var u userv1alpha1.DatabaseUser
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &u))
		u.Spec.Hosts, u.Generation = append(u.Spec.Hosts, "10.%"), u.Generation+1
		require.NoError(t, h.Update(t.Context(), &u))
		assert.Equal(t, "DatabaseUser default/"+other+" has the better claim to the user name", h.reconcileNamed(t, name).Message)
	}
	assert.Len(t, h.database.Accounts(), 2)
}

// TestSwappedNamesAndHosts checks that DatabaseUsers get each other's names also if their hosts differ.
func TestSwappedNamesAndHosts(t *testing.T) {
	all := rivals(false, [2]string{"a", "alice"}, [2]string{"b", "bob"})
	all[2].(*userv1alpha1.DatabaseUser).Spec.Hosts = []string{"10.%"}
	h := newHarness(t, all...)
	for _, name := range []string{"a", "b"} {
		require.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, name).Reason)
	}
	rename(t, h, map[string]string{"a": "bob", "b": "alice"})
	for range 3 {
		for _, name := range []string{"b", "a"} {
			h.reconcileNamed(t, name)
		}
	}
	assert.Equal(t, []string{"'alice'@'10.%'", "'bob'@'%'"}, h.database.Accounts())
	assert.Equal(t, "a", h.database.Password(accounts.Account{User: "bob", Host: "%"}))
}

func rename(t *testing.T, h *harness, users map[string]string) {
	t.Helper()
	for name, user := range users {
		var u userv1alpha1.DatabaseUser
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &u))
		u.Spec.User, u.Generation = user, u.Generation+1
		require.NoError(t, h.Update(t.Context(), &u))
	}
}

// TestManyWait has many DatabaseUsers for one name. A change of one of them enqueues the one that has the name and the one that is
// next, and all conditions name the one that has it.
func TestManyWait(t *testing.T) {
	const waiting = 100
	pairs := [][2]string{{"next", "alice"}, {"owner", "alice"}}
	for i := range waiting {
		pairs = append(pairs, [2]string{fmt.Sprintf("later%03d", i), "alice"})
	}
	h := newHarness(t, rivals(false, pairs...)...)
	next := rivals(false, [2]string{"next", "alice"})[0]
	require.NoError(t, h.Delete(t.Context(), next))
	require.Equal(t, "ProvisionSucceeded", h.reconcileNamed(t, "owner").Reason)
	require.NoError(t, h.Create(t.Context(), next))
	for _, name := range []string{"next", "later007", "later099"} {
		assert.Equal(t, "DatabaseUser default/owner has the better claim to the user name", h.reconcileNamed(t, name).Message)
	}
	for changed, want := range map[string]string{"later007": "next owner", "owner": "next", "next": "later000 owner"} {
		var u userv1alpha1.DatabaseUser
		require.NoError(t, h.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: changed}, &u))
		var enqueued []string
		for _, r := range (&controller.Operator{Target: "shop"}).EnqueueSameUser(t.Context(), h.Client, &u) {
			enqueued = append(enqueued, r.Name)
		}
		slices.Sort(enqueued)
		assert.Equal(t, want, strings.Join(slices.Compact(enqueued), " "), changed)
	}
}
