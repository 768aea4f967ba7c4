package test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// powerful are accounts that must not be handed to whoever writes a DatabaseUser. In the statements $name is the user name and
// $role the name of a role; the account is $name@%.
var powerful = map[string]struct {
	reason     string
	statements []string
	want       string // part of the condition's message
}{
	"super":                    {"it is root by another name", []string{"GRANT SUPER ON *.* TO `$name`"}, "SUPER on *.*"},
	"set-user":                 {"a view or routine with the definer root runs as root", []string{"GRANT SET USER ON *.* TO `$name`"}, "SET USER on *.*"},
	"connection-admin":         {"it ends the sessions of others", []string{"GRANT CONNECTION ADMIN ON *.* TO `$name`"}, "CONNECTION ADMIN on *.*"},
	"federated-admin":          {"CREATE SERVER connects this server to another", []string{"GRANT FEDERATED ADMIN ON *.* TO `$name`"}, "FEDERATED ADMIN on *.*"},
	"read-only-admin":          {"it writes to a replica", []string{"GRANT READ_ONLY ADMIN ON *.* TO `$name`"}, "READ_ONLY ADMIN on *.*"},
	"binlog-admin":             {"it purges the log that others restore from", []string{"GRANT BINLOG ADMIN ON *.* TO `$name`"}, "BINLOG ADMIN on *.*"},
	"binlog-monitor":           {"it reads what is logged of all databases", []string{"GRANT BINLOG MONITOR ON *.* TO `$name`"}, "BINLOG MONITOR on *.*"},
	"binlog-replay":            {"an event in the log may be anything", []string{"GRANT BINLOG REPLAY ON *.* TO `$name`"}, "BINLOG REPLAY on *.*"},
	"replication-slave":        {"it reads the changes of all databases", []string{"GRANT REPLICATION SLAVE ON *.* TO `$name`"}, "REPLICATION SLAVE on *.*"},
	"replication-slave-admin":  {"it makes the server replicate from another", []string{"GRANT REPLICATION SLAVE ADMIN ON *.* TO `$name`"}, "REPLICATION SLAVE ADMIN on *.*"},
	"replication-master-admin": {"it changes how the server replicates", []string{"GRANT REPLICATION MASTER ADMIN ON *.* TO `$name`"}, "REPLICATION MASTER ADMIN on *.*"},
	"delete-history":           {"it removes what is kept to audit", []string{"GRANT DELETE HISTORY ON *.* TO `$name`"}, "DELETE HISTORY on *.*"},
	"select-everywhere":        {"it reads the databases of everybody", []string{"GRANT SELECT ON *.* TO `$name`"}, "SELECT on *.*"},
	"everything":               {"as plain as it gets", []string{"GRANT ALL ON *.* TO `$name` WITH GRANT OPTION"}, "ALL PRIVILEGES on *.*"},
	"default-role":             {"the role is active at the login", []string{"CREATE ROLE `$role`", "GRANT ALL ON *.* TO `$role`", "GRANT `$role` TO `$name`", "SET DEFAULT ROLE `$role` FOR `$name`"}, "the role "},
	"granted-role":             {"SET ROLE activates it", []string{"CREATE ROLE `$role`", "GRANT ALL ON *.* TO `$role`", "GRANT `$role` TO `$name`"}, "the role "},
	"nested-role":              {"a role has the privileges of its roles", []string{"CREATE ROLE `$role`", "CREATE ROLE `$role-inner`", "GRANT SUPER ON *.* TO `$role-inner`", "GRANT `$role-inner` TO `$role`", "GRANT `$role` TO `$name`"}, "the role "},
	"harmless-role":            {"it may get more privileges later", []string{"CREATE ROLE `$role`", "GRANT `$role` TO `$name`"}, "the role "},
	"admin-of-role":            {"it grants the role to anybody", []string{"CREATE ROLE `$role`", "GRANT `$role` TO `$name` WITH ADMIN OPTION"}, "the role "},
	"proxy":                    {"it is let in as root", []string{"GRANT PROXY ON root@localhost TO `$name`"}, "PROXY"},
	"mysql-schema":             {"it writes accounts into the tables", []string{"GRANT ALL ON mysql.* TO `$name`"}, "ALL PRIVILEGES on mysql.*"},
	"mysql-read":               {"the hashes of all passwords are there", []string{"GRANT SELECT ON mysql.* TO `$name`"}, "SELECT on mysql.*"},
	"pattern-of-all":           {"the pattern matches the schema mysql", []string{"GRANT INSERT ON `%`.* TO `$name`"}, "INSERT on %.*"},
	"pattern-of-mysql":         {"the pattern matches the schema mysql", []string{"GRANT UPDATE ON `m_sq%`.* TO `$name`"}, "UPDATE on m_sq%.*"},
	"sys-schema":               {"its routines run as the server's own account", []string{"GRANT CREATE ROUTINE ON sys.* TO `$name`"}, "CREATE ROUTINE on sys.*"},
	"performance-schema":       {"the statements of others are there", []string{"GRANT SELECT ON performance_schema.* TO `$name`"}, "SELECT on performance_schema.*"},
	"global-priv":              {"it contains the accounts", []string{"GRANT UPDATE ON mysql.global_priv TO `$name`"}, "UPDATE on mysql.global_priv"},
	"column-of-global-priv":    {"it contains the privileges", []string{"GRANT UPDATE (Priv) ON mysql.global_priv TO `$name`"}, "UPDATE on mysql.global_priv"},
	"db":                       {"it contains the privileges", []string{"GRANT INSERT ON mysql.db TO `$name`"}, "INSERT on mysql.db"},
	"tables-priv":              {"it contains the privileges", []string{"GRANT INSERT ON mysql.tables_priv TO `$name`"}, "INSERT on mysql.tables_priv"},
	"proxies-priv":             {"it contains who is let in as whom", []string{"GRANT INSERT ON mysql.proxies_priv TO `$name`"}, "INSERT on mysql.proxies_priv"},
	"roles-mapping":            {"it contains who has which role", []string{"GRANT INSERT ON mysql.roles_mapping TO `$name`"}, "INSERT on mysql.roles_mapping"},
	"servers":                  {"it contains passwords of other servers", []string{"GRANT SELECT ON mysql.servers TO `$name`"}, "SELECT on mysql.servers"},
	"func":                     {"it loads a library into the server", []string{"GRANT INSERT ON mysql.func TO `$name`"}, "INSERT on mysql.func"},
	"event":                    {"it contains what runs as whom", []string{"GRANT UPDATE ON mysql.event TO `$name`"}, "UPDATE on mysql.event"},
	"proc":                     {"it contains what runs as whom", []string{"GRANT UPDATE ON mysql.proc TO `$name`"}, "UPDATE on mysql.proc"},
	"system-routine":           {"it runs as its definer, root", []string{"GRANT EXECUTE ON PROCEDURE mysql.AddGeometryColumn TO `$name`"}, "EXECUTE on mysql.addgeometrycolumn"},
	"grant-option":             {"it hands privileges to others", []string{"GRANT SELECT ON theirs.* TO `$name` WITH GRANT OPTION"}, "GRANT OPTION on theirs.*"},
	"grant-option-on-a-table":  {"it hands privileges to others", []string{"CREATE TABLE theirs.`$name` (id INT)", "GRANT SELECT ON theirs.`$name` TO `$name` WITH GRANT OPTION"}, "GRANT OPTION on theirs."},
	"locked":                   {"somebody has shut it on purpose", []string{"ALTER USER `$name` ACCOUNT LOCK"}, "is locked"},
	"the-same-name":            {"the server lets it use database privileges of the same name for other hosts", []string{"CREATE USER `$name`@'10.%'", "GRANT UPDATE ON mysql.* TO `$name`@'10.%'"}, "UPDATE on mysql.*"},
	"quoting":                  {"names are quoted in the server's list", []string{"GRANT SELECT ON `x`.* TO `$name`", "GRANT SELECT ON `a``.* TO x ON ``b`.* TO `$name` WITH GRANT OPTION"}, "GRANT OPTION on a`.* TO x ON `b.*"},
}

// TestAdoptRefusesPowerfulAccounts checks that accounts that can do more than use databases are refused, and not changed.
func TestAdoptRefusesPowerfulAccounts(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	db.execute(t, "CREATE DATABASE theirs")
	before := map[string][]string{}
	for name, tc := range powerful {
		user := n.unique(name)
		db.execute(t, "CREATE USER `"+user+"` IDENTIFIED BY 'theirs'")
		for _, s := range tc.statements {
			db.execute(t, strings.NewReplacer("$name", user, "$role", "role-"+user).Replace(s))
		}
		before[name] = db.all(t, user)
	}
	o := n.operate(t, db.Server)
	for name := range powerful {
		n.setPassword(t, name, "swordfish")
		n.create(t, name, func(u *userv1alpha1.DatabaseUser) {
			u.Spec.Adopt = true
			u.Spec.Grants = []userv1alpha1.Grant{{Database: "shop", Privileges: []privilege{"SELECT"}}}
			u.Spec.Limits.MaxUserConnections = 1
		})
	}
	for name, tc := range powerful {
		t.Run(name, func(t *testing.T) {
			u := n.settled(t, name, "AccountExists")
			message := ready(u).Message
			assert.Contains(t, message, tc.want, tc.reason)
			assert.Contains(t, message, "choose another name", "the remedy")
			assert.Empty(t, u.Status.Hosts, "it is not recorded, so that no deletion drops it")
			assert.Equal(t, before[name], db.all(t, u.Spec.User), "nothing has changed: %s", tc.reason)
		})
		n.delete(t, name)
		n.Gone(t, n.user(name))
		assert.Equal(t, before[name], db.all(t, n.unique(name)), "nor by the deletion")
	}
	for _, call := range o.calls.Take() {
		assert.Regexp(t, "^(Lookup|AccountsOf|Powers) ", call)
	}
}

// all returns all that the server lists for the accounts of a user name, with the stored passwords, sorted: the order of SHOW GRANTS
// changes with the grants of other accounts.
func (d *database) all(t require.TestingT, user string) []string {
	all := d.lines(t, "SELECT CONCAT(Host, ' ', Priv) FROM mysql.global_priv WHERE User = ? ORDER BY 1", user)
	all = append(all, d.lines(t, "SHOW GRANTS FOR `"+user+"`@`%`")...)
	slices.Sort(all)
	return all
}

// TestNewAccountWithPowersOfOthers checks that an account is not created if the server would let it use privileges of other
// accounts that no DatabaseUser may have, not even by spec.adopt, and that harmless ones do not hinder it.
func TestNewAccountWithPowersOfOthers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		statements []string
		want       string // part of the condition's message; empty if the account is created
		revoke     string
	}{
		"SameName": {
			reason:     "dba@127.0.0.1 may do what dba@127.% may do in databases",
			statements: []string{"CREATE USER dba@'127.%'", "GRANT ALL ON mysql.* TO dba@'127.%'"},
			want:       "ALL PRIVILEGES on mysql.* of 'dba'@'127.%'",
			revoke:     "REVOKE ALL ON mysql.* FROM dba@'127.%'",
		},
		"SameNameOnATable": {
			reason:     "as before",
			statements: []string{"CREATE USER dba@'127.%'", "GRANT SELECT ON mysql.global_priv TO dba@'127.%'"},
			want:       "SELECT on mysql.global_priv of 'dba'@'127.%'",
			revoke:     "DROP USER dba@'127.%'",
		},
		"Anonymous": {
			reason:     "everybody may do what the anonymous user may do in databases",
			statements: []string{"CREATE USER ''@'127.%'", "GRANT ALL ON mysql.* TO ''@'127.%'"},
			want:       "ALL PRIVILEGES on mysql.* of ''@'127.%'",
			revoke:     "DROP USER ''@'127.%'",
		},
		"Public": {
			reason:     "everybody has this role",
			statements: []string{"GRANT RELOAD ON *.* TO PUBLIC"},
			want:       "RELOAD on *.* of PUBLIC",
			revoke:     "REVOKE RELOAD ON *.* FROM PUBLIC",
		},
		"RoleOfPublic": {
			reason:     "and with it the roles of this role",
			statements: []string{"CREATE ROLE admins", "GRANT SUPER ON *.* TO admins", "GRANT admins TO PUBLIC"},
			want:       "the role admins of PUBLIC",
			revoke:     "REVOKE admins FROM PUBLIC",
		},
		"RowWithoutAccount": {
			reason:     "the server does not ask whether dba@127.% exists",
			statements: []string{"INSERT INTO mysql.db (Host, Db, User, Insert_priv) VALUES ('127.%', 'mysql', 'dba', 'Y')", "FLUSH PRIVILEGES"},
			want:       "INSERT on mysql.* of 'dba'@'127.%' by a row in mysql.db",
			revoke:     "DROP USER dba@'127.%'",
		},
		"RowWithoutHost": {
			reason:     "no host is every host",
			statements: []string{"INSERT INTO mysql.tables_priv (Host, Db, User, Table_name, Table_priv) VALUES ('', 'mysql', 'dba', 'global_priv', 'Update')", "FLUSH PRIVILEGES"},
			want:       "UPDATE on mysql.global_priv of 'dba'@'' by a row in mysql.tables_priv",
			revoke:     "DELETE FROM mysql.tables_priv WHERE User = 'dba'",
		},
		"RowOfARole": {
			reason: "the account would have the role after a restart of the server",
			statements: []string{"CREATE ROLE admins", "GRANT SUPER ON *.* TO admins",
				"INSERT INTO mysql.roles_mapping (Host, User, Role) VALUES ('127.0.0.1', 'dba', 'admins')"},
			want:   "the role admins by a row in mysql.roles_mapping",
			revoke: "DELETE FROM mysql.roles_mapping WHERE User = 'dba'",
		},
		"Harmless": {
			reason: "the case of user names matters, and what a role can do holds for its members",
			statements: []string{"CREATE USER dba@'10.%'", "GRANT SELECT ON shop.* TO dba@'10.%'", "CREATE USER DBA@'10.%'", "GRANT SUPER ON *.* TO DBA@'10.%'",
				"CREATE ROLE dba", "GRANT ALL ON *.* TO dba", "GRANT SELECT ON shop.* TO PUBLIC"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n, db := newTenant(t), open(t, startServer(t))
			db.execute(t, tc.statements...)
			o := n.operate(t, db.Server)
			n.setPassword(t, "alice", "swordfish")
			n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) {
				u.Spec.User, u.Spec.Hosts, u.Spec.Adopt = "dba", []string{"127.0.0.1"}, true
			})
			if tc.want != "" {
				u := n.settled(t, "alice", "AccountExists")
				assert.Contains(t, ready(u).Message, tc.want, tc.reason)
				assert.Empty(t, u.Status.Hosts)
				assert.Error(t, db.login("dba", "swordfish"))
				db.execute(t, tc.revoke)
				o.pass(t, n, "alice")
			}
			n.provisioned(t, "alice")
			assert.NoError(t, db.login("dba", "swordfish"), tc.reason)
		})
	}
}

// TestPrivilegesWithoutAccount has privileges for an account that does not exist, so that CREATE USER fails: they are not harmed, and
// the message says what to do.
func TestPrivilegesWithoutAccount(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, startServer(t))
	rows := func() []string {
		return db.lines(t, "SELECT CONCAT(User, '@', Host, ' ', Db) FROM mysql.db WHERE User <> 'operator'")
	}
	insert := "INSERT INTO mysql.db (Host, Db, User, Select_priv) VALUES ('%', 'shop', '" + n.unique("alice") + "', 'Y')"
	db.execute(t, insert, "FLUSH PRIVILEGES")
	left := rows()
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice").Spec.User
	u := n.settled(t, "alice", "AccountExists")
	assert.Equal(t, "account '"+user+"'@'%' cannot be created: the server still has privileges for it, which DROP USER removes, or an account of this name for the empty host; "+
		"choose another name, or ask an administrator of the database", ready(u).Message)
	o.pass(t, n, "alice")
	o.Requests.Take()
	o.calls.Take()
	o.pass(t, n, "alice")
	assert.Empty(t, o.Requests.Take()["PATCH databaseusers/status"], "it waits")
	assert.Contains(t, o.calls.Take(), "Create "+user)

	n.delete(t, "alice")
	n.Gone(t, u)
	assert.Equal(t, left, rows(), "nothing of it is ours")
	n.create(t, "alice")
	n.settled(t, "alice", "AccountExists")
	db.execute(t, "DROP USER `"+user+"`")
	o.pass(t, n, "alice")
	n.provisioned(t, "alice")
	assert.Empty(t, rows())
}

// TestCreatedWhileAdopting checks that an account that somebody else creates between the lookup and CREATE USER is judged
// before it is taken over.
func TestCreatedWhileAdopting(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	user := n.unique("alice")
	o := n.operate(t, db.Server)
	var once sync.Once
	o.calls.intercept(func(call string, _ accounts.Account) error {
		if call == "Create" {
			once.Do(func() {
				db.execute(t, "CREATE USER `"+user+"` IDENTIFIED BY 'theirs'", "GRANT SUPER ON *.* TO `"+user+"`")
			})
		}
		return nil
	})
	n.setPassword(t, "alice", "swordfish")
	n.create(t, "alice", func(u *userv1alpha1.DatabaseUser) { u.Spec.Adopt = true })
	operatortest.Eventually(t, "it is refused", func(c *assert.CollectT) {
		u := operatortest.Live(c, n, n.user("alice"))
		assert.Contains(c, ready(u).Message, "SUPER on *.*")
		assert.Empty(c, u.Status.Hosts)
	})
	assert.NoError(t, db.login(user, "theirs"))
	n.delete(t, "alice")
	n.Gone(t, n.user("alice"))
	assert.NoError(t, db.login(user, "theirs"))
}

// TestExpired checks that a DatabaseUser whose password has expired is not Ready, and that another password ends that.
func TestExpired(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice").Spec.User
	n.provisioned(t, "alice")
	db.execute(t, "ALTER USER `"+user+"` PASSWORD EXPIRE")
	o.resync(t, n, "alice")
	u := n.settled(t, "alice", "PasswordExpired")
	assert.Equal(t, "the password of account '"+user+"'@'%' has expired, so that nobody can use the account: put another password into Secret alice, "+
		"or ask an administrator of the database, who may have shut the account on purpose", ready(u).Message)
	assert.Equal(t, metav1.ConditionFalse, ready(u).Status)
	n.setPassword(t, "alice", "marlin")
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(user, "marlin"))
}

// TestLocked checks that a DatabaseUser whose account somebody locks is not Ready, and that the operator does not unlock it.
func TestLocked(t *testing.T) {
	t.Parallel()
	n, db := newTenant(t), open(t, sharedServer(t))
	o := n.operate(t, db.Server)
	n.setPassword(t, "alice", "swordfish")
	user := n.create(t, "alice").Spec.User
	n.provisioned(t, "alice")
	db.execute(t, "ALTER USER `"+user+"` ACCOUNT LOCK")
	o.resync(t, n, "alice")
	u := n.settled(t, "alice", "AccountLocked")
	assert.Equal(t, "account '"+user+"'@'%' is locked, so that nobody can log in: ask an administrator of the database to unlock it with "+
		"ALTER USER … ACCOUNT UNLOCK", ready(u).Message)
	assert.Equal(t, metav1.ConditionFalse, ready(u).Status)
	n.setPassword(t, "alice", "marlin")
	operatortest.Eventually(t, "a new password is set all the same", func(c *assert.CollectT) {
		assert.NotEqual(c, u.Status.PasswordVersion, operatortest.Live(c, n, n.user("alice")).Status.PasswordVersion)
	})
	n.settled(t, "alice", "AccountLocked")
	assert.ErrorContains(t, db.login(user, "marlin"), "locked")

	db.execute(t, "ALTER USER `"+user+"` ACCOUNT UNLOCK")
	o.pass(t, n, "alice")
	n.provisioned(t, "alice")
	assert.NoError(t, db.login(user, "marlin"))
}
