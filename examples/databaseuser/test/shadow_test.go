package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestShadowing asks for accounts of user names that others use, for a more specific host: the server would let in as the new
// account those who log in from there, and would let the new account use the privileges of the others in databases.
func TestShadowing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		host    string // the host of somebody else's account
		grant   []string
		adopted string // the reason of Ready with spec.adopt
		says    string // part of the condition's message with spec.adopt
	}{
		"dba": {
			reason: "the administrator could not log in", host: "127.0.0.%", grant: []string{"GRANT ALL ON *.* TO $ WITH GRANT OPTION"},
			adopted: "AccountExists", says: "ALL PRIVILEGES on *.* of 'dba",
		},
		"repl": {
			reason: "the replica could not log in", host: "%", grant: []string{"GRANT REPLICATION SLAVE ON *.* TO $"},
			adopted: "AccountExists", says: "REPLICATION SLAVE on *.* of 'repl",
		},
		"member": {
			reason: "what the role can do would not be there after the login", host: "%", grant: []string{"CREATE ROLE staff", "GRANT staff TO $"},
			adopted: "AccountExists", says: "the role staff of 'member",
		},
		"locked": {
			reason: "somebody has shut it on purpose", host: "%", grant: []string{"GRANT SELECT ON payroll.* TO $", "ALTER USER $ ACCOUNT LOCK"},
			adopted: "AccountExists", says: "'@'%', which is locked",
		},
		"payroll": {
			reason: "its privileges in databases would hold for the new account", host: "127.0.0.%", grant: []string{"GRANT SELECT ON payroll.* TO $"},
			adopted: "ProvisionSucceeded",
		},
		"every-host": {
			reason: "an empty host is every host", host: "",
			grant:   []string{"INSERT INTO mysql.global_priv (Host, User, Priv) VALUES ('', '$', '{\"access\": 0, \"account_locked\": true}')", "FLUSH PRIVILEGES"},
			adopted: "AccountExists", says: "'@'', which is locked",
		},
	}
	n, db := newTenant(t), open(t, startServer(t))
	db.execute(t, "CREATE DATABASE payroll")
	n.operate(t, db.Server)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			user := n.unique(name)
			account := "`" + user + "`@`" + tc.host + "`"
			if tc.host == "" {
				account = user
			} else {
				db.execute(t, "CREATE USER "+account+" IDENTIFIED BY 'theirs'")
			}
			for _, statement := range tc.grant {
				db.execute(t, strings.ReplaceAll(statement, "$", account))
			}
			n.setPassword(t, name, "swordfish")
			n.create(t, name, func(u *userv1alpha1.DatabaseUser) { u.Spec.Hosts = []string{"127.0.0.1"} })
			u := n.settled(t, name, "AccountExists")
			assert.Contains(t, ready(u).Message, "account '"+user+"'@'127.0.0.1' would take the logins and get the privileges of '"+user+"'@'"+tc.host+"'", tc.reason)
			assert.Empty(t, u.Status.Hosts)
			assert.Len(t, db.accounts(t, &tenant{suffix: user}), 1, tc.reason)

			n.set(t, name, func(s *spec) { s.Adopt = true })
			u = n.settled(t, name, tc.adopted)
			assert.Contains(t, ready(u).Message, tc.says, tc.reason)
			if tc.adopted == "AccountExists" {
				assert.Len(t, db.accounts(t, &tenant{suffix: user}), 1, "not even by spec.adopt: %s", tc.reason)
				return
			}
			assert.NoError(t, db.login(user, "swordfish"), "whoever sets spec.adopt has asked for it")
		})
	}
}

// TestShadowingAnother asks for the user name of another DatabaseUser, for a more specific host.
func TestShadowingAnother(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "theirs")
	user := n.create(t, "alice").Spec.User
	n.provisioned(t, "alice")
	n.setPassword(t, "mallory", "swordfish")
	for _, adopt := range []bool{false, true} {
		n.create(t, "mallory", func(u *userv1alpha1.DatabaseUser) {
			u.Spec.User, u.Spec.Hosts, u.Spec.Adopt = user, []string{"127.0.0.1"}, adopt
		})
		assert.Equal(t, "DatabaseUser "+n.Namespace+"/alice has the better claim to the user name", ready(n.settled(t, "mallory", "AccountClaimed")).Message)
		assert.Equal(t, []string{user + "@%"}, db.accounts(t, n))
		assert.NoError(t, db.login(user, "theirs"))
		n.delete(t, "mallory")
		n.Gone(t, n.user("mallory"))
	}

	// The hosts of the one that has the name change as before.
	for _, hosts := range [][]string{{"127.0.0.1", "%"}, {"127.0.0.1"}, {"127.0.0.%", "10.%"}} {
		n.set(t, "alice", func(s *spec) { s.Hosts = hosts })
		n.provisioned(t, "alice")
		operatortest.Eventually(t, "the accounts are as specified", func(c *assert.CollectT) { assert.Len(c, db.accounts(c, n), len(hosts)) })
		assert.NoError(t, db.login(user, "theirs"))
	}
	o.pass(t, n, "alice")
	n.provisioned(t, "alice")
}
