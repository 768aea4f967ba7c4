package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestImpossible covers specs that the schema accepts and no server does: the condition names the field and the problem, no
// statement is sent, and other DatabaseUsers are reconciled.
func TestImpossible(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	grant := func(database, table string) func(*spec) {
		return func(s *spec) {
			s.Grants = []userv1alpha1.Grant{{Database: database, Table: table, Privileges: []privilege{"SELECT"}}}
		}
	}
	user := func(name string) func(*spec) { return func(s *spec) { s.User = name } }
	host := func(name string) func(*spec) { return func(s *spec) { s.Hosts = []string{"127.0.0.1", name} } }
	tests := map[string]struct {
		edit func(*spec)
		says string
	}{
		"no-user":        {user(""), "spec.user: the user name is empty"},
		"root":           {user("root"), "spec.user: the user name is root, an account of the server itself"},
		"public":         {user("Public"), "spec.user: the user name is Public, an account of the server itself"},
		"system":         {user("mariadb.sys"), "spec.user: the user name is mariadb.sys, an account of the server itself"},
		"ourselves":      {user("operator"), "the user name is operator, by which the operator itself logs in"},
		"nul":            {user("a\x00b"), "spec.user: the user name has a NUL in it"},
		"trailing-space": {user("alice "), "spec.user: the user name ends with a space, which the server would drop"},
		"apostrophes":    {user("'alice'"), "spec.user: the user name begins and ends with an apostrophe"},
		"emoji":          {user("alice🐟"), "spec.user: the user name has a character beyond U+FFFF in it"},
		"network":        {host("10.0.0.1/255.0.0.0"), "spec.hosts[1]: the host is not an IPv4 network such as 10.1.0.0/255.255.0.0"},
		"prefix":         {host("10.0.0.0/8"), "spec.hosts[1]: the host is not an IPv4 network"},
		"database":       {grant("shop ", ""), "spec.grants[0]: the database ends with a space"},
		"folder":         {grant("#mysql50#shop", ""), "spec.grants[0]: the database begins with #mysql50#"},
		"long-pattern":   {grant(strings.Repeat("_", 33), ""), "spec.grants[0]: the database is longer than 64 characters, where each of % _ \\ counts twice"},
		"table":          {grant("shop", "a\x00b"), "spec.grants[0]: the table has a NUL in it"},
		"two-at-once": {func(s *spec) { s.User, s.Hosts = "", []string{"1.2.3.4/5"} },
			"spec.hosts[0]: the host is not an IPv4 network such as 10.1.0.0/255.255.0.0"},
	}
	for name, tc := range tests {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) { tc.edit(&u.Spec) })
	}
	n.setPassword(t, "bystander", "swordfish")
	n.create(t, "bystander")
	n.provisioned(t, "bystander")
	for name, tc := range tests {
		got := n.settled(t, name, "ProvisionFailed")
		assert.Contains(t, ready(got).Message, "The user provisioning has failed: "+tc.says, name)
		assert.Contains(t, types(got), "Stalled", "%s: it is not tried again and again", name)
		assert.Empty(t, got.Status.Hosts)
	}
	assert.Equal(t, []string{n.unique("bystander") + "@%"}, db.accounts(t, n))
	for _, call := range o.calls.Take() {
		if !strings.HasPrefix(call, "Lookup operator") { // which its client refuses
			assert.Contains(t, call, n.unique("bystander"))
		}
	}
	for name := range tests { // put right
		n.set(t, name, func(s *spec) { s.User, s.Hosts, s.Grants = n.unique(name), nil, nil })
	}
	for name := range tests {
		n.provisioned(t, name)
		n.delete(t, name)
	}
	for name := range tests {
		n.Gone(t, n.user(name))
	}
	assert.Equal(t, []string{n.unique("bystander") + "@%"}, db.accounts(t, n))
}

// TestHostile uses names and passwords that look like SQL.
func TestHostile(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	n.operate(t, db.Server)
	var total int
	users := map[string]string{
		"a": "' OR 1=1; DROP USER `operator`@`127.0.0.1`; -- ", "b": "x`@`%` IDENTIFIED BY 'y'; -- x", "c": `back\slash\`, "d": "-- comment", "e": "%", "f": "_", "g": "ünï/*cödé*/",
		"h": "new\nline", "i": strings.Repeat("é", 80), "j": "\"double\"", "k": "a@b", "l": "ALL PRIVILEGES", "m": "''", "n": "\u200b",
	}
	passwords := []string{"'; DROP USER `operator`@`127.0.0.1`; -- ", `\'; x`, strings.Repeat("long'\\", 1700), "ünï🐟", "a\nb\tc", " spaces ", "%s%d%!", "\"\"''``"}
	for name, user := range users {
		n.setPassword(t, name, passwords[total%len(passwords)])
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) {
			u.Spec.User = user
			u.Spec.Grants = []userv1alpha1.Grant{{Database: "a%b_c`d'\\", Privileges: []privilege{"SELECT"}}}
		})
		total++
	}
	have := map[string]bool{}
	var made int
	for name, user := range users {
		password := string(operatortest.Live(t, n, n.secret(name)).Data["password"])
		u := n.user(name)
		operatortest.Eventually(t, name+" is decided", func(c *assert.CollectT) {
			assert.Contains(c, []string{"ProvisionSucceeded", "ProvisionFailed"}, ready(operatortest.Live(c, n, u)).Reason, ready(u).Message)
		})
		if ready(u).Reason == "ProvisionSucceeded" {
			made++
			have[user] = true
			assert.NoError(t, db.login(user, password), user)
		}
	}
	t.Logf("%d hostile users: %d made, %d refused", len(users), made, len(users)-made)
	assert.Positive(t, made)
	for _, account := range db.lines(t, "SELECT User FROM mysql.user WHERE Host IN ('%', '127.0.0.1')") {
		assert.True(t, have[account] || account == "operator", "%q", account)
	}
	assert.Len(t, db.lines(t, "SELECT User FROM mysql.db WHERE Db = ?", "a\\%b\\_c`d'\\\\"), made)
	for name := range users {
		n.delete(t, name)
	}
	for name := range users {
		n.Gone(t, n.user(name))
	}
	assert.Equal(t, []string{"operator"}, db.lines(t, "SELECT User FROM mysql.user WHERE Host <> 'localhost'"))
}

// TestImpossiblePasswords covers passwords that the server or its clients cannot handle: the message does not contain them.
func TestImpossiblePasswords(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	n.operate(t, db.Server)
	for name, tc := range map[string]struct{ password, says string }{
		"nul":      {"tuna\x00fish", "the password has a NUL in it"},
		"not-utf8": {"tuna\xfffish", "the password is not UTF-8"},
	} {
		n.setPassword(t, name, tc.password)
		n.create(t, name)
		u := n.settled(t, name, "ProvisionFailed")
		assert.Contains(t, ready(u).Message, tc.says)
		assert.NotContains(t, ready(u).Message, "tuna")
		n.setPassword(t, name, "marlin")
		n.provisioned(t, name)
		assert.NoError(t, db.login(n.unique(name), "marlin"))
	}
	n.create(t, "no-password", func(u *userv1alpha1.DatabaseUser) { u.Spec.Password = nil })
	assert.Equal(t, "spec.password is missing: name a Secret and its key", ready(n.settled(t, "no-password", "SecretNotFound")).Message)
	n.create(t, "no-name", func(u *userv1alpha1.DatabaseUser) { u.Spec.Password = &corev1.SecretKeySelector{Key: "password"} })
	n.settled(t, "no-name", "SecretNotFound")
	n.create(t, "no-key", func(u *userv1alpha1.DatabaseUser) { u.Spec.Password.Key = "" })
	require.NoError(t, n.Create(t.Context(), &corev1.Secret{ObjectMeta: n.Meta("no-key")}))
	n.settled(t, "no-key", "SecretNotFound")
}
