package test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/databaseuser/controller"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

type (
	spec      = userv1alpha1.DatabaseUserSpec
	privilege = userv1alpha1.Privilege
)

// TestCreated checks that the account is exactly as specified.
func TestCreated(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	shop := n.unique("db_shop")
	db.execute(t, "CREATE DATABASE `"+shop+"`", "CREATE TABLE `"+shop+"`.items (id INT)")
	n.setPassword(t, "alice", "swordfish ' \\ ü")
	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Hosts = []string{"127.0.0.1", "10.0.0.0/255.0.0.0"}
		u.Spec.Grants = []userv1alpha1.Grant{
			{Database: shop, Privileges: []privilege{"SELECT", "INSERT"}},
			{Database: shop, Table: "items", Privileges: []privilege{"DELETE"}},
		}
		u.Spec.Limits = userv1alpha1.Limits{MaxUserConnections: 3, MaxConnectionsPerHour: 1000, MaxQueriesPerHour: 2000, MaxUpdatesPerHour: 4000}
	})
	u := n.provisioned(t, "alice")
	name := n.unique("alice")

	assert.Equal(t, []string{name + "@10.0.0.0/255.0.0.0", name + "@127.0.0.1"}, db.accounts(t, n))
	for _, host := range u.Status.Hosts {
		assert.ElementsMatch(t, []string{
			"GRANT SELECT, INSERT ON `" + "db\\_shop" + shop[len("db_shop"):] + "`.* TO `" + name + "`@`" + host + "`",
			"GRANT DELETE ON `" + shop + "`.`items` TO `" + name + "`@`" + host + "`",
		}, db.grants(t, name, host))
		assert.Contains(t, db.lines(t, "SHOW GRANTS FOR `"+name+"`@`"+host+"`")[0],
			" WITH MAX_QUERIES_PER_HOUR 2000 MAX_UPDATES_PER_HOUR 4000 MAX_CONNECTIONS_PER_HOUR 1000 MAX_USER_CONNECTIONS 3")
	}
	assert.NoError(t, db.login(name, "swordfish ' \\ ü"))
	assert.Error(t, db.login(name, "swordfish"))

	assert.Equal(t, []string{controller.Finalizer}, u.Finalizers)
	secret := operatortest.Live(t, n, n.secret("alice"))
	assert.Equal(t, string(secret.UID)+"/"+secret.ResourceVersion, u.Status.PasswordVersion)
	assert.Equal(t, n.unique("shop"), u.Status.Target)
	got := ready(u)
	assert.Equal(t, metav1.ConditionTrue, got.Status)
	assert.Equal(t, "The user provisioning has succeeded.", got.Message)
	assert.False(t, got.LastTransitionTime.IsZero())
	assert.False(t, got.LastUpdateTime.IsZero())

	n.set(t, "alice", func(s *spec) { s.Limits, s.Require = userv1alpha1.Limits{}, userv1alpha1.RequireSSL })
	n.provisioned(t, "alice")
	for _, host := range u.Status.Hosts {
		first := db.lines(t, "SHOW GRANTS FOR `"+name+"`@`"+host+"`")[0]
		assert.Contains(t, first, " REQUIRE SSL")
		assert.NotContains(t, first, "MAX_", "no limits")
	}
	assert.Error(t, db.login(name, "swordfish ' \\ ü"), "without TLS")
	n.set(t, "alice", func(s *spec) { s.Require = userv1alpha1.RequireNone })
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(name, "swordfish ' \\ ü"))
}

// TestPasswordIsRotated checks that the change of a Secret makes a new password work, and the old one not. The clock that decides
// when a resync is due stands still. The log shows how long it took: a second or two on a machine that is not busy.
func TestPasswordIsRotated(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	before := n.provisioned(t, "alice")
	user := before.Spec.User
	require.NoError(t, db.login(user, "swordfish"))

	n.setPassword(t, "alice", "marlin")
	began := time.Now()
	operatortest.Eventually(t, "the new password works, though no resync is due", func(c *assert.CollectT) {
		assert.NoError(c, db.login(user, "marlin"))
	})
	t.Logf("the new password worked %s after the Secret had changed", time.Since(began).Round(time.Millisecond))
	assert.Error(t, db.login(user, "swordfish"))
	operatortest.Eventually(t, "the version is recorded", func(c *assert.CollectT) {
		assert.NotEqual(c, before.Status.PasswordVersion, operatortest.Live(c, n, n.user("alice")).Status.PasswordVersion)
	})
	after := n.provisioned(t, "alice")
	assert.Equal(t, ready(before), ready(after), "the condition had nothing to tell")

	n.setPassword(t, "other", "tuna") // another Secret
	n.set(t, "alice", func(s *spec) { s.Password.Name = "other" })
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(user, "tuna"))
}

// TestSecretComesAndGoes checks that the condition names what is missing, and that the account stays as it is in that
// time.
func TestSecretComesAndGoes(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	user := n.create(t, "alice").Spec.User
	where := n.Namespace + "/alice"
	assert.Equal(t, "Secret "+where+" does not exist", ready(n.settled(t, "alice", "SecretNotFound")).Message)

	secret := n.secret("alice")
	secret.Data = map[string][]byte{"pw": []byte("swordfish")}
	require.NoError(t, n.Create(t.Context(), secret))
	assert.Equal(t, `Secret `+where+` has no key "password"`, ready(n.settled(t, "alice", "SecretKeyNotFound")).Message)
	n.setPassword(t, "alice", "")
	assert.Equal(t, `the value of key "password" in Secret `+where+` is empty`, ready(n.settled(t, "alice", "PasswordEmpty")).Message)
	assert.Empty(t, db.accounts(t, n))
	assert.Empty(t, o.calls.Take(), "without a password the database is not asked")
	n.setPassword(t, "alice", "swordfish")
	was := n.provisioned(t, "alice")
	require.NoError(t, db.login(user, "swordfish"))
	o.calls.Take()

	stays := func() {
		t.Helper()
		assert.Empty(t, o.calls.Take(), "the account is not touched")
		assert.NoError(t, db.login(user, "swordfish"))
		assert.Equal(t, was.Status.Hosts, operatortest.Live(t, n, n.user("alice")).Status.Hosts)
	}
	require.NoError(t, n.Delete(t.Context(), secret))
	missing := n.settled(t, "alice", "SecretNotFound")
	assert.Equal(t, metav1.ConditionFalse, ready(missing).Status)
	stays()
	operatortest.Change(t, n, n.user("alice"), func(u *userv1alpha1.DatabaseUser) { u.Spec.Password.Optional = new(true) })
	n.settled(t, "alice", "SecretNotFound")
	stays()
	n.setPassword(t, "alice", "")
	n.settled(t, "alice", "PasswordEmpty")
	stays()

	n.setPassword(t, "alice", "marlin")
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(user, "marlin"))
}

// TestGrantsChange checks that grants follow the spec, and that grants of others stay.
func TestGrantsChange(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	shop := n.unique("shop")
	db.execute(t, "CREATE DATABASE `"+shop+"`")
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: shop, Privileges: []privilege{"SELECT", "INSERT"}}}
	}).Spec.User
	n.provisioned(t, "alice")
	on := func(privileges, what string) string {
		return "GRANT " + privileges + " ON " + what + " TO `" + user + "`@`%`"
	}
	db.execute(t, "GRANT UPDATE ON `"+shop+"`.* TO `"+user+"`@`%`", "GRANT SELECT ON `theirs%`.* TO `"+user+"`@`%`", "GRANT PROCESS ON *.* TO `"+user+"`@`%`")

	n.set(t, "alice", func(s *spec) {
		s.Grants = []userv1alpha1.Grant{{Database: shop, Privileges: []privilege{"SELECT", "EXECUTE"}}, {Database: "future", Privileges: []privilege{"ALL"}}}
	})
	n.provisioned(t, "alice")
	assert.ElementsMatch(t, []string{on("SELECT, UPDATE, EXECUTE", "`"+shop+"`.*"), on("SELECT", "`theirs%`.*"),
		on("SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER", "`future`.*"),
	}, db.grants(t, user, "%"))
	assert.Contains(t, db.lines(t, "SHOW GRANTS FOR `"+user+"`@`%`")[0], "GRANT PROCESS ON *.*")

	n.set(t, "alice", func(s *spec) { s.Grants = nil })
	u := n.provisioned(t, "alice")
	assert.ElementsMatch(t, []string{on("UPDATE", "`"+shop+"`.*"), on("SELECT", "`theirs%`.*")}, db.grants(t, user, "%"))
	assert.Empty(t, u.Status.Grants)
}

// TestSomeGrantsFail checks that a refused grant is named, that the others are applied, and that all are recorded.
func TestSomeGrantsFail(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	shop := n.unique("shop")
	db.execute(t, "CREATE DATABASE `"+shop+"`")
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{
			{Database: "first", Privileges: []privilege{"SELECT"}},
			{Database: shop, Table: "items", Privileges: []privilege{"SELECT"}},
			{Database: "zuletzt", Privileges: []privilege{"SELECT"}},
		}
	}).Spec.User
	u := n.settled(t, "alice", "ProvisionFailed")
	assert.Contains(t, ready(u).Message, "The user provisioning has failed: grant SELECT on "+shop+".items: the database refused: error 1146")
	assert.NotContains(t, ready(u).Message, "first")
	assert.Len(t, db.grants(t, user, "%"), 2, "the others are made")
	assert.NotEmpty(t, u.Status.PasswordVersion, "the password is as it should be")
	o.calls.Take()
	o.pass(t, n, "alice")
	assert.NotContains(t, o.calls.Take(), "SetPassword "+user, "and not set again and again")

	n.set(t, "alice", func(s *spec) { s.Grants = s.Grants[1:] })
	operatortest.Eventually(t, "what is no longer wanted goes all the same", func(c *assert.CollectT) { assert.Len(c, db.grants(c, user, "%"), 1) })
	db.execute(t, "CREATE TABLE `"+shop+"`.items (id INT)")
	n.provisioned(t, "alice")
	assert.Len(t, db.grants(t, user, "%"), 2)
	n.set(t, "alice", func(s *spec) { s.Grants = nil })
	n.provisioned(t, "alice")
	assert.Empty(t, db.grants(t, user, "%"))
}

func TestHostsChange(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Hosts = []string{"Example.COM", "127.0.0.1", "example.com"}
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
	}).Spec.User
	n.provisioned(t, "alice")
	assert.Equal(t, []string{user + "@127.0.0.1", user + "@example.com"}, db.accounts(t, n))

	n.set(t, "alice", func(s *spec) { s.Hosts = []string{"127.0.0.1", "10.%"} })
	u := n.provisioned(t, "alice")
	assert.Equal(t, []string{"10.%", "127.0.0.1"}, u.Status.Hosts)
	assert.Equal(t, []string{user + "@10.%", user + "@127.0.0.1"}, db.accounts(t, n))
	assert.Len(t, db.grants(t, user, "10.%"), 1, "the new account has the grants")
	assert.NoError(t, db.login(user, "swordfish"))
}

// TestRenamed checks that the account of the old name is dropped, and that its grants are not taken over.
func TestRenamed(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
		u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
	})
	n.provisioned(t, "alice")
	n.set(t, "alice", func(s *spec) { s.User = n.unique("bob") })
	u := n.provisioned(t, "alice")
	assert.Equal(t, []string{n.unique("bob") + "@%"}, db.accounts(t, n))
	assert.Equal(t, n.unique("bob"), u.Status.User)
	assert.Len(t, db.grants(t, n.unique("bob"), "%"), 1)
	assert.NoError(t, db.login(n.unique("bob"), "swordfish"))
	assert.Error(t, db.login(n.unique("alice"), "swordfish"))
}

// TestAccountExists checks that an account of somebody else is neither changed nor dropped, unless it is adopted.
func TestAccountExists(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	user := n.unique("alice")
	db.execute(t, "CREATE USER `"+user+"` IDENTIFIED BY 'theirs'", "GRANT SELECT ON theirs.* TO `"+user+"`")
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	u := n.settled(t, "alice", "AccountExists")
	assert.Contains(t, ready(u).Message, "account '"+user+"'@'%' exists and was not made for this DatabaseUser")
	assert.Contains(t, ready(u).Message, "spec.adopt", "the remedy")
	assert.NoError(t, db.login(user, "theirs"))
	n.set(t, "alice", func(s *spec) { s.Hosts = []string{"127.0.0.1", "%"} })
	n.settled(t, "alice", "AccountExists")
	assert.Len(t, db.accounts(t, n), 1, "all or nothing")

	require.NoError(t, n.Delete(t.Context(), u))
	n.Gone(t, u)
	assert.NoError(t, db.login(user, "theirs"), "and is still theirs")
	for _, call := range o.calls.Take() {
		assert.Equal(t, "Lookup "+user, call)
	}

	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true })
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(user, "swordfish"))
	assert.Len(t, db.grants(t, user, "%"), 1, "what they had granted stays")
	n.set(t, "alice", func(s *spec) { s.Adopt = false })
	n.provisioned(t, "alice")
	require.NoError(t, n.Delete(t.Context(), n.user("alice")))
	n.Gone(t, n.user("alice"))
	assert.Empty(t, db.accounts(t, n))
}

// TestAccountIsCreatedByOthersMeanwhile checks that an account that somebody else creates between the lookup and CREATE USER stays
// theirs.
func TestAccountIsCreatedByOthersMeanwhile(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	user := n.unique("alice")
	o := n.operate(t, db.Server)
	var once sync.Once
	o.calls.intercept(func(call string, _ accounts.Account) error {
		if call == "Create" {
			once.Do(func() { db.execute(t, "CREATE USER `"+user+"` IDENTIFIED BY 'theirs'") })
		}
		return nil
	})
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice")
	u := n.settled(t, "alice", "AccountExists")
	o.pass(t, n, "alice")
	assert.Empty(t, u.Status.Hosts)
	assert.NoError(t, db.login(user, "theirs"))
	require.NoError(t, n.Delete(t.Context(), u))
	n.Gone(t, u)
	assert.NoError(t, db.login(user, "theirs"))
}
