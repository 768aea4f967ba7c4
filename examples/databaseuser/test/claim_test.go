package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestTwoForOneAccount has two DatabaseUsers for one account: the condition of the second names the first, and it takes over when
// that one is deleted.
func TestTwoForOneAccount(t *testing.T) {
	t.Parallel()
	n, m, db := newTenant(t), newTenant(t), open(t, sharedServer(t))
	if n.Namespace > m.Namespace { // which decides between two of the same second
		n, m = m, n
	}
	user, target := n.unique("alice"), n.unique("shop")
	same := func(u *userv1alpha1.DatabaseUser) {
		u.Spec.User, u.Labels[userv1alpha1.TargetLabel] = user, target
	}
	both := func(s *settings) { s.cache = []string{n.Namespace, m.Namespace} }
	n.setPassword(t, "first", "one")
	m.setPassword(t, "second", "two")
	n.create(t, "first", same) // before the operator runs: the older one wins, whichever it sees first
	m.create(t, "second", same)
	o := n.operate(t, db.Server, both)
	n.provisioned(t, "first")
	claimed := ready(m.settled(t, "second", "AccountClaimed"))
	assert.Equal(t, "DatabaseUser "+n.Namespace+"/first has the better claim to the user name", claimed.Message)
	assert.NoError(t, db.login(user, "one"))

	// Who has the account keeps it, though another one is older.
	n.create(t, "third", same, func(u *userv1alpha1.DatabaseUser) { u.Labels = nil })
	require.NoError(t, n.Delete(t.Context(), n.user("first")))
	n.Gone(t, n.user("first"))
	m.provisioned(t, "second")
	require.NoError(t, db.login(user, "two"))
	n.setPassword(t, "third", "three")
	n.relabel(t, "third", target)
	n.settled(t, "third", "AccountClaimed")
	o.pass(t, m, "second")
	m.provisioned(t, "second")
	assert.NoError(t, db.login(user, "two"))

	m.set(t, "second", func(s *spec) { s.User = m.unique("bob") })
	m.provisioned(t, "second")
	n.provisioned(t, "third")
	assert.NoError(t, db.login(user, "three"), "the name was free, and the account is made anew")
	assert.Equal(t, []string{user + "@%"}, db.accounts(t, n))
	assert.Equal(t, []string{m.unique("bob") + "@%"}, db.accounts(t, m))
}

// TestNamesDifferInCase checks that names in different case are different accounts.
func TestNamesDifferInCase(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	for _, name := range []string{"alice", "ALICE", "Alice"} {
		object := map[string]string{"alice": "a", "ALICE": "b", "Alice": "c"}[name]
		n.setPassword(t, object, "password of "+name)
		n.create(t, object, func(u *userv1alpha1.DatabaseUser) { u.Spec.User = n.unique(name) })
	}
	for _, object := range []string{"a", "b", "c"} {
		u := n.provisioned(t, object)
		assert.NoError(t, db.login(u.Spec.User, "password of "+u.Spec.User[:5]))
	}
	require.NoError(t, n.Delete(t.Context(), n.user("b")))
	n.Gone(t, n.user("b"))
	assert.ElementsMatch(t, []string{n.unique("alice") + "@%", n.unique("Alice") + "@%"}, db.accounts(t, n))
}

// TestBothHaveTheAccount checks that an account that two statuses record is not dropped while one of them specifies it.
func TestBothHaveTheAccount(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	n.setPassword(t, "first", "one")
	n.setPassword(t, "second", "two")
	user := n.create(t, "first").Spec.User
	had := n.provisioned(t, "first").Status
	second := n.create(t, "second", func(u *userv1alpha1.DatabaseUser) { u.Spec.User = user })
	n.settled(t, "second", "AccountClaimed")

	second = operatortest.Live(t, n, second)
	second.Status.User, second.Status.Hosts, second.Status.Target = had.User, had.Hosts, had.Target
	require.NoError(t, n.Status().Update(t.Context(), second))
	n.settled(t, "second", "AccountClaimed")
	n.set(t, "second", func(s *spec) { s.User = n.unique("bob") })
	n.provisioned(t, "second")
	assert.NoError(t, db.login(user, "one"), "the first one's account is still there")

	second = operatortest.Live(t, n, second)
	second.Status.User, second.Status.Hosts = had.User, had.Hosts
	require.NoError(t, n.Status().Update(t.Context(), second))
	require.NoError(t, n.Delete(t.Context(), second))
	n.Gone(t, second)
	assert.NoError(t, db.login(user, "one"))

	require.NoError(t, n.Delete(t.Context(), n.user("first")))
	n.Gone(t, n.user("first"))
	assert.Equal(t, []string{n.unique("bob") + "@%"}, db.accounts(t, n), "what was made up for the second one's status")
}

// TestAccountInAnotherDatabaseIsNoClaim checks that an account in another database gives no precedence in this one.
func TestAccountInAnotherDatabaseIsNoClaim(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	elder := n.create(t, "elder", func(u *userv1alpha1.DatabaseUser) {
		u.Labels[userv1alpha1.TargetLabel] = "elsewhere"
		u.Spec.User = n.unique("alice")
	})
	elder.Status.User, elder.Status.Hosts, elder.Status.Target = elder.Spec.User, []string{"%"}, "elsewhere"
	require.NoError(t, n.Status().Update(t.Context(), elder))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	n.provisioned(t, "alice")
	n.relabel(t, "elder", n.unique("shop"))
	n.settled(t, "elder", "WaitingForRelease")
	o.pass(t, n, "alice")
	n.setPassword(t, "alice", "marlin")
	operatortest.Eventually(t, "it goes on", func(c *assert.CollectT) { assert.NoError(c, db.login(elder.Spec.User, "marlin")) })
	n.provisioned(t, "alice")
}
