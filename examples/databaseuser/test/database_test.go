package test

import (
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestDatabaseUnreachable checks the condition while the database is down, and that changes are applied when it is up again.
func TestDatabaseUnreachable(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	var password atomic.Pointer[string]
	password.Store(new(db.Admin().Password))
	o := n.operate(t, db.Server, func(s *settings) { s.password = func() (string, error) { return *password.Load(), nil } })
	require.NoError(t, db.Down())
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice").Spec.User
	u := n.settled(t, "alice", "DatabaseUnreachable")
	assert.Equal(t, "The user provisioning has failed: the database at "+db.Address()+" cannot be reached: connect: connection refused", ready(u).Message)
	assert.Empty(t, u.Status.Hosts, "nothing is ours before it was looked for")
	require.NoError(t, db.Up(t.Context()))
	n.provisioned(t, "alice")

	// Everything that happens while it is away.
	require.NoError(t, db.Down())
	n.setPassword(t, "alice", "marlin")
	n.settled(t, "alice", "DatabaseUnreachable")
	n.set(t, "alice", func(s *spec) { s.User = n.unique("bob") })
	u = n.settled(t, "alice", "DatabaseUnreachable")
	assert.Equal(t, user, u.Status.User)
	require.NoError(t, db.Up(t.Context()))
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(n.unique("bob"), "marlin"))
	assert.Equal(t, []string{n.unique("bob") + "@%"}, db.accounts(t, n))

	// The operator's own password. Connections that are open are let be, so these are ended.
	db.execute(t, "ALTER USER `operator`@`127.0.0.1` IDENTIFIED BY 'another one'")
	require.NoError(t, db.Down())
	require.NoError(t, db.Up(t.Context()))
	n.setPassword(t, "alice", "tuna")
	u = n.settled(t, "alice", "DatabaseUnreachable")
	assert.Contains(t, ready(u).Message, "Access denied for user 'operator'@'127.0.0.1'")
	assert.NotContains(t, ready(u).Message, db.Admin().Password)
	password.Store(new("another one"))
	o.pass(t, n, "alice")
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(n.unique("bob"), "tuna"), "without a restart")
}

// ends are the lines of the general log for the end of a prepared statement or a connection. The server does not answer these
// requests, so it may log them later.
var ends = regexp.MustCompile(`(?m)^(\d{6} [ \d]\d:\d\d:\d\d\t|\t\t) *\d+ (Quit|Close stmt)\t\n`)

// TestQuiet checks that no statement is sent while nothing changes, and that a resync repairs differences.
func TestQuiet(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t, mariadb.WithGeneralLog()))
	o := n.operate(t, db.Server)
	log := func() string {
		content, err := os.ReadFile(db.GeneralLog())
		require.NoError(t, err)
		return ends.ReplaceAllString(string(content), "")
	}
	names := []string{"alice", "bob"}
	for _, name := range names {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) {
			u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
			u.Spec.Limits.MaxUserConnections = 5
		})
		n.provisioned(t, name)
	}
	user := n.unique("alice")
	o.pass(t, n, names...)
	o.Requests.Take()

	before, objects := log(), []*userv1alpha1.DatabaseUser{operatortest.Live(t, n, n.user("alice")), operatortest.Live(t, n, n.user("bob"))}
	const passes = 5
	for range passes {
		o.pass(t, n, names...) // annotations
		n.setPassword(t, "unrelated", "changes")
		for _, name := range names {
			operatortest.Change(t, n, n.user(name), func(u *userv1alpha1.DatabaseUser) { u.Labels["team"] += "x" })
		}
	}
	alice := operatortest.Live(t, n, n.user("alice"))
	alice.Status.Conditions = append(alice.Status.Conditions, userv1alpha1.Condition{Type: "Theirs", Status: "True"})
	require.NoError(t, n.Status().Update(t.Context(), alice))
	o.pass(t, n, names...)
	assert.Equal(t, before, log(), "no statement")
	t.Logf("0 statements in %d passes with nothing to do", 2*(passes+1)*len(names))
	assert.Empty(t, o.Requests.Take(), "nor any request")
	assert.Equal(t, objects[1].Status, operatortest.Live(t, n, n.user("bob")).Status)

	// A resync only reads, if all is well.
	o.calls.Take()
	o.resync(t, n, names...)
	assert.ElementsMatch(t, []string{"Lookup " + user, "Lookup " + n.unique("bob")}, o.calls.Take())
	assert.Empty(t, o.Requests.Take()["PATCH databaseusers/status"])

	for what, harm := range map[string]string{
		"password": "ALTER USER `" + user + "` IDENTIFIED BY 'by hand'",
		"plugin":   "ALTER USER `" + user + "` IDENTIFIED VIA unix_socket",
		"grant":    "REVOKE SELECT ON shop.* FROM `" + user + "`",
		"limits":   "ALTER USER `" + user + "` WITH MAX_USER_CONNECTIONS 1",
		"require":  "ALTER USER `" + user + "` REQUIRE X509",
		"account":  "DROP USER `" + user + "`",
	} {
		db.execute(t, harm)
		o.pass(t, n, "alice")
		assert.Empty(t, o.calls.Take(), what)
		o.resync(t, n, "alice")
		operatortest.Eventually(t, what, func(c *assert.CollectT) { // a status write may meet a conflict with what triggers the passes
			assert.NoError(c, db.login(user, "swordfish"))
			assert.Len(c, db.grants(c, user, "%"), 1)
		})
		o.pass(t, n, "alice")
		o.calls.Take()
		assert.Equal(t, []string{"GRANT SELECT ON `shop`.* TO `" + user + "`@`%`"}, db.grants(t, user, "%"), what)
		assert.Contains(t, db.lines(t, "SHOW GRANTS FOR `"+user+"`")[0], " WITH MAX_USER_CONNECTIONS 5", what)
		n.provisioned(t, "alice")
	}
}

// TestHarmWhileDown checks that changes by hand while the operator is down are repaired; passwords only if the server shows them.
func TestHarmWhileDown(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
	}).Spec.User
	n.provisioned(t, "alice")
	for what, harm := range map[string]string{
		"password": "ALTER USER `" + user + "` IDENTIFIED BY 'by hand'",
		"grant":    "REVOKE SELECT ON shop.* FROM `" + user + "`",
		"account":  "DROP USER `" + user + "`",
		"nothing":  "DO 1",
	} {
		o.Stop()
		db.execute(t, harm)
		o = n.operate(t, db.Server)
		operatortest.Eventually(t, what, func(c *assert.CollectT) { // the first pass may meet a conflict
			require.NoError(c, db.login(user, "swordfish"))
			assert.Len(c, db.grants(c, user, "%"), 1)
		})
		o.pass(t, n, "alice")
		if what == "nothing" {
			assert.Equal(t, []string{"Lookup " + user}, slices.Compact(o.calls.Take()), "a start only reads")
			assert.Empty(t, o.Requests.Take()["PATCH databaseusers/status"])
		}
	}
}
