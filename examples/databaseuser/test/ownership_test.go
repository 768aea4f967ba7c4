package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestReadOnlyThenRestart has a server that refuses to create accounts. While the operator is down, an administrator creates them
// by hand: they are neither taken over nor dropped.
func TestReadOnlyThenRestart(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	names := []string{"kept", "deleted", "deleted-meanwhile"}
	o := n.operate(t, db.Server)
	db.execute(t, "SET GLOBAL read_only = ON")
	for _, name := range names {
		n.setPassword(t, name, "swordfish")
		n.create(t, name)
	}
	for _, name := range names {
		u := n.settled(t, name, "ProvisionFailed")
		require.Equal(t, []string{"%"}, u.Status.PendingHosts)
	}
	o.Stop()
	db.disconnect(t, db.Admin().User) // a statement of the operator that the server has not begun must not be done once it may
	db.execute(t, "SET GLOBAL read_only = OFF")
	for _, name := range names {
		db.execute(t, "CREATE USER `"+n.unique(name)+"` IDENTIFIED BY 'theirs'", "GRANT SELECT ON theirs.* TO `"+n.unique(name)+"`")
	}
	n.delete(t, "deleted-meanwhile")
	n.operate(t, db.Server)
	n.Gone(t, n.user("deleted-meanwhile"))
	for _, name := range []string{"kept", "deleted"} {
		assert.Contains(t, ready(n.settled(t, name, "AccountExists")).Message, "set spec.adopt to take it over")
	}
	n.delete(t, "deleted")
	n.Gone(t, n.user("deleted"))
	for _, name := range names {
		assert.NoError(t, db.login(n.unique(name), "theirs"), name)
		assert.Len(t, db.grants(t, n.unique(name), "%"), 1, name)
	}
	n.set(t, "kept", func(s *spec) { s.Adopt = true })
	n.provisioned(t, "kept")
	assert.NoError(t, db.login(n.unique("kept"), "swordfish"))
}

// TestSecretChangesAfterCrash ends the operator between CREATE USER and the status, and then changes the password and deletes
// objects: what was created is ours.
func TestSecretChangesAfterCrash(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	o.calls.intercept(func(call string, _ accounts.Account) error {
		if call == "SetSettings" {
			return &accounts.UnreachableError{Address: "db", Reason: "the process ends here"}
		}
		return nil
	})
	for _, name := range []string{"kept", "deleted"} {
		n.setPassword(t, name, "swordfish")
		n.create(t, name)
		n.settled(t, name, "DatabaseUnreachable")
	}
	o.Stop()
	for _, name := range []string{"kept", "deleted"} { // as if the answer of CREATE USER had not been recorded
		u := operatortest.Live(t, n, n.user(name))
		u.Status.PendingHosts, u.Status.PasswordVersion = u.Status.Hosts, ""
		require.NoError(t, n.Status().Update(t.Context(), u))
		assert.Error(t, db.login(n.unique(name), "swordfish"), "nobody can log in yet")
	}
	n.setPassword(t, "kept", "marlin")
	n.delete(t, "deleted")
	n.operate(t, db.Server)
	n.provisioned(t, "kept")
	assert.NoError(t, db.login(n.unique("kept"), "marlin"))
	n.Gone(t, n.user("deleted"))
	assert.Equal(t, []string{n.unique("kept") + "@%"}, db.accounts(t, n))
}

// TestSwappedNames exchanges the names of two DatabaseUsers.
func TestSwappedNames(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	for _, name := range []string{"alice", "bob"} {
		n.setPassword(t, name, "password of "+name)
		n.create(t, name)
		n.provisioned(t, name)
	}
	n.set(t, "alice", func(s *spec) { s.User = n.unique("bob") })
	n.settled(t, "alice", "AccountClaimed")
	assert.NoError(t, db.login(n.unique("alice"), "password of alice"), "it is kept while the other one keeps its own")
	n.set(t, "bob", func(s *spec) { s.User = n.unique("alice") })
	n.provisioned(t, "alice")
	n.provisioned(t, "bob")
	assert.NoError(t, db.login(n.unique("bob"), "password of alice"))
	assert.NoError(t, db.login(n.unique("alice"), "password of bob"))
}

// TestSlowDatabase checks that a pass that waits for the database keeps neither those waiting that it answers, nor those that do
// not need it.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "retained", "swordfish")
	n.create(t, "retained", retain)
	n.provisioned(t, "retained")
	entered, release := make(chan struct{}), make(chan struct{})
	o.calls.intercept(func(_ string, a accounts.Account) error {
		if a.User == n.unique("slow") {
			close(entered)
			<-release
			o.calls.intercept(nil)
		}
		return nil
	})
	n.setPassword(t, "slow", "swordfish")
	n.create(t, "slow")
	<-entered
	n.create(t, "incomplete", func(u *userv1alpha1.DatabaseUser) { u.Spec.Password = nil })
	n.settled(t, "incomplete", "SecretNotFound")
	n.setPassword(t, "fast", "swordfish")
	n.create(t, "fast")
	n.provisioned(t, "fast")
	n.delete(t, "retained")
	n.Gone(t, n.user("retained"))
	close(release)
	n.provisioned(t, "slow")
}
