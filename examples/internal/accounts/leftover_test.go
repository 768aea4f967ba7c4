//go:build !race

// The attacks follow one another, so the race detector finds nothing in them, and would take several times as long.

package accounts_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// TestPowersOfLeftovers writes rows into the tables of the server, which reads them as it does when it starts. The account may do
// then what Powers returns, and nothing else.
func TestPowersOfLeftovers(t *testing.T) {
	s := startServer(t)
	root, c := openRoot(t, s), connect(t, s)
	execute(t, root, "CREATE DATABASE shop", "CREATE TABLE shop.items (id INT)", "CREATE ROLE admins", "GRANT SUPER ON *.* TO admins")
	local := accounts.Account{User: "bob", Host: "127.0.0.1"}
	const (
		readSys      = "SELECT * FROM sys.version"
		readAccounts = "SELECT User FROM mysql.global_priv"
		database     = "INSERT INTO mysql.db (Host, User, Db, Select_priv) VALUES "
		table        = "INSERT INTO mysql.tables_priv (Host, User, Db, Table_name, Table_priv) VALUES "
		routine      = "INSERT INTO mysql.procs_priv (Host, User, Db, Routine_name, Routine_type, Proc_priv) VALUES "
	)
	tests := map[string]struct {
		reason  string
		rows    []string
		allowed string // a statement that the account may execute, if there are powers
		denied  string // one that it may not
		want    []string
	}{
		"Database": {
			reason: "the server does not ask whether bob@127.% exists", rows: []string{database + "('127.%', 'bob', 'sys', 'Y')"}, allowed: readSys,
			want: []string{"SELECT on sys.* of 'bob'@'127.%' by a row in mysql.db"},
		},
		"NoHost": {
			reason: "no host is every host", rows: []string{database + "('', 'bob', 'sys', 'Y')"}, allowed: readSys,
			want: []string{"SELECT on sys.* of 'bob'@'' by a row in mysql.db"},
		},
		"Anonymous": {
			reason: "they are everybody's", rows: []string{database + "('127.%', '', 'sys', 'Y')"}, allowed: readSys,
			want: []string{"SELECT on sys.* of ''@'127.%' by a row in mysql.db"},
		},
		"AnonymousWithoutHost": {
			reason: "likewise", rows: []string{database + "('', '', 's_s', 'Y')"}, allowed: readSys,
			want: []string{"SELECT on s_s.* of ''@'' by a row in mysql.db"},
		},
		"GrantOption": {
			reason:  "it hands privileges to others",
			rows:    []string{"INSERT INTO mysql.db (Host, User, Db, Select_priv, Grant_priv) VALUES ('127.%', 'bob', 'shop', 'Y', 'Y')"},
			allowed: "GRANT SELECT ON shop.* TO `carol`@`127.0.0.1`",
			want:    []string{"GRANT OPTION on shop.* of 'bob'@'127.%' by a row in mysql.db"},
		},
		"Table": {
			reason: "the accounts are there", rows: []string{table + "('127.%', 'bob', 'mysql', 'global_priv', 'Select')"}, allowed: readAccounts,
			want: []string{"SELECT on mysql.global_priv of 'bob'@'127.%' by a row in mysql.tables_priv"},
		},
		"TableWithoutHost": {
			reason: "no host is every host", rows: []string{table + "('', 'bob', 'mysql', 'global_priv', 'Select')"}, allowed: readAccounts,
			want: []string{"SELECT on mysql.global_priv of 'bob'@'' by a row in mysql.tables_priv"},
		},
		"Column": {
			reason: "one column is enough",
			rows: []string{
				"INSERT INTO mysql.tables_priv (Host, User, Db, Table_name, Column_priv) VALUES ('127.%', 'bob', 'mysql', 'global_priv', 'Select')",
				"INSERT INTO mysql.columns_priv (Host, User, Db, Table_name, Column_name, Column_priv) VALUES ('127.%', 'bob', 'mysql', 'global_priv', 'User', 'Select')",
			},
			allowed: readAccounts,
			want:    []string{"SELECT on mysql.global_priv of 'bob'@'127.%' by a row in mysql.tables_priv"},
		},
		"Routine": {
			reason: "it runs as the server's own account", rows: []string{routine + "('127.%', 'bob', 'sys', 'version_major', 'FUNCTION', 'Execute')"},
			allowed: "SELECT sys.version_major()",
			want:    []string{"EXECUTE on sys.version_major of 'bob'@'127.%' by a row in mysql.procs_priv"},
		},
		"Proxy": {
			reason: "bob is let in as root by plugins that map accounts",
			rows:   []string{"INSERT INTO mysql.proxies_priv (Host, User, Proxied_host, Proxied_user) VALUES ('127.%', 'bob', 'localhost', 'root')"},
			want:   []string{"PROXY of 'bob'@'127.%' by a row in mysql.proxies_priv"},
		},
		"Role": {
			reason: "SET ROLE activates it", rows: []string{"INSERT INTO mysql.roles_mapping (Host, User, Role) VALUES ('127.0.0.1', 'bob', 'admins')"},
			allowed: "SET ROLE admins", want: []string{"the role admins"},
		},
		"RoleOfAnotherHost": {
			reason: "roles hold for one account", rows: []string{"INSERT INTO mysql.roles_mapping (Host, User, Role) VALUES ('127.%', 'bob', 'admins')"},
			denied: "SET ROLE admins",
		},
		"RoleOfTheSameName": {
			reason: "its rows have no host, and hold for its members only",
			rows:   []string{"CREATE ROLE bob", "GRANT SELECT ON sys.* TO bob", "GRANT SELECT ON mysql.global_priv TO bob"},
			denied: readAccounts,
		},
		"AccountWithoutHost": {
			reason: "it is an account for every host",
			rows: []string{"INSERT INTO mysql.global_priv (Host, User, Priv) VALUES ('', 'bob', '{\"access\": 0}')",
				database + "('', 'bob', 'sys', 'Y')"},
			allowed: readSys, want: []string{"SELECT on sys.* of 'bob'@''"},
		},
		"Harmless": {
			reason: "to use databases is what a DatabaseUser is for",
			rows: []string{database + "('127.%', 'bob', 'shop', 'Y')", database + "('', '', 'test\\\\_%', 'Y')",
				table + "('127.%', 'bob', 'shop', 'items', 'Select,Create View,Show view,Delete versioning rows')", routine + "('127.%', 'bob', 'shop', 'p', 'PROCEDURE', 'Execute,Alter Routine')"},
			denied: readSys,
		},
		"SomebodyElses": {reason: "the names differ", rows: []string{database + "('%', 'bobby', 'sys', 'Y')", database + "('%', 'Bob', 'sys', 'Y')"}, denied: readSys},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.Create(t.Context(), local, "swordfish", accounts.Settings{}))
			execute(t, root, "CREATE USER carol@'127.0.0.1'")
			defer cleanTables(t, root)
			execute(t, root, append(tc.rows, "FLUSH PRIVILEGES")...)
			powers, err := c.Powers(t.Context(), local)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, powers); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			bob := openAs(t, s, mariadb.Credentials{User: "bob", Password: "swordfish"})
			if tc.allowed != "" {
				_, err := bob.ExecContext(t.Context(), tc.allowed)
				assert.NoError(t, err, tc.reason)
			}
			if tc.denied != "" {
				_, err := bob.ExecContext(t.Context(), tc.denied)
				assert.Error(t, err, tc.reason)
			}
		})
	}
}

// TestPowersBeforeCreation judges an account that does not exist, but has a role already: it would get it.
func TestPowersBeforeCreation(t *testing.T) {
	s := startServer(t)
	root, c := openRoot(t, s), connect(t, s)
	execute(t, root, "CREATE ROLE admins", "INSERT INTO mysql.roles_mapping (Host, User, Role) VALUES ('%', 'bob', 'admins')",
		"INSERT INTO mysql.db (Host, User, Db, Insert_priv) VALUES ('%', 'bob', 'mysql', 'Y')", "FLUSH PRIVILEGES")
	powers, err := c.Powers(t.Context(), bob)
	require.NoError(t, err)
	assert.Equal(t, []string{"INSERT on mysql.* by a row in mysql.db", "the role admins by a row in mysql.roles_mapping"}, powers)
}

// TestHostileLeftovers judges rows with hostile names. Powers finds the rows of the user name, no others, and changes
// nothing.
func TestHostileLeftovers(t *testing.T) {
	// The mode of the server. The client sets the mode of its own sessions, so one server is enough that differs in all that concerns quoting.
	for _, mode := range []string{"", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, mariadb.WithSQLMode(mode))
			b := newSiege(t, s, connect(t, s))
			var tried int
			for _, a := range every(21, corpus(attempts)) {
				account := accounts.Account{User: a.account.User, Host: "127.0.0.1"}
				if account.Validate() != nil {
					continue
				}
				tried++
				object := fitting(a.database)
				insert := func(statement string, args ...any) {
					_, err := b.root.ExecContext(t.Context(), statement, args...)
					require.NoError(t, err, "%q", args)
				}
				insert("INSERT INTO mysql.db (Host, User, Db, Insert_priv) VALUES ('127.%', ?, 'mysql', 'Y')", account.User)
				insert("INSERT INTO mysql.tables_priv (Host, User, Db, Table_name, Table_priv) VALUES ('127.%', ?, 'mysql', ?, 'Delete')", account.User, object)
				insert("INSERT INTO mysql.roles_mapping (Host, User, Role) VALUES ('127.0.0.1', ?, ?)", account.User, object)
				before := b.rows()
				powers, err := b.client.Powers(t.Context(), account)
				require.NoError(t, err, "%q", account)
				require.Equal(t, []string{
					"INSERT on mysql.* of '" + account.User + "'@'127.%' by a row in mysql.db",
					"DELETE on mysql." + object + " of '" + account.User + "'@'127.%' by a row in mysql.tables_priv",
					"the role " + object + " by a row in mysql.roles_mapping",
				}, powers)
				require.Equal(t, before, b.rows(), "%q: nothing has changed", account)
				for _, table := range []string{"db", "tables_priv", "roles_mapping"} {
					insert("DELETE FROM mysql."+table+" WHERE User = ?", account.User)
				}
			}
			assert.Greater(t, tried, 200)
		})
	}
}

// fitting returns a name that fits into the tables of the server and is not empty.
func fitting(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == 0 || r > 0xFFFF || r == utf8.RuneError {
			return '!'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > 63 {
		name = string(runes[:63])
	}
	return name + "." // the server removes spaces at the end
}

// cleanTables removes the accounts, the roles and the rows of a case.
func cleanTables(t *testing.T, root *sql.DB) {
	for _, table := range []string{"db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "roles_mapping", "global_priv"} {
		execute(t, root, "DELETE FROM mysql."+table+" WHERE User IN ('', 'bob', 'Bob', 'bobby', 'carol')")
	}
	execute(t, root, "FLUSH PRIVILEGES")
}

// openAs logs in over TCP. The connection is closed when the test ends.
func openAs(t *testing.T, s *mariadb.Server, c mariadb.Credentials) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.Login(c).FormatDSN())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

// TestPowersOfRows judges rows with columns and privileges of other servers.
func TestPowersOfRows(t *testing.T) {
	tests := map[string]struct {
		reason string
		row    map[string]string
		want   []string
	}{
		"UnknownColumn":  {"a later server may have others", map[string]string{"Db": "shop", "Select_priv": "Y", "Fly_high_priv": "Y"}, []string{"FLY HIGH on shop.*"}},
		"UnknownMember":  {"likewise", map[string]string{"Db": "shop", "Table_name": "t", "Table_priv": "Select,Fly High"}, []string{"FLY HIGH on shop.t"}},
		"EscapedPattern": {"it is not the name of the server's own database", map[string]string{"Db": `m\_sql`, "Drop_priv": "Y"}, nil},
		"Pattern":        {"it matches mysql", map[string]string{"Db": "m%", "Create_tmp_table_priv": "Y"}, []string{"CREATE TEMPORARY TABLES on m%.*"}},
		"NamedStar":      {"it is a database", map[string]string{"Db": "*", "Drop_priv": "Y"}, nil},
		"Nothing":        {"the row is empty", map[string]string{"Db": "mysql", "Drop_priv": "N"}, nil},
		"RoutineOption":  {"it hands privileges to others", map[string]string{"Db": "shop", "Routine_name": "p", "Proc_priv": "Execute,Grant"}, []string{"GRANT OPTION on shop.p"}},
		"History": {
			"each of these is harmless in a database",
			map[string]string{"Db": "shop", "Delete_history_priv": "Y", "Show_create_routine_priv": "Y", "Lock_tables_priv": "Y", "Create_view_priv": "Y"}, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, accounts.PowersOfRow(tc.row)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryPrivilegeInRows checks that each privilege that this package grants is read from rows by its own name.
func TestEveryPrivilegeInRows(t *testing.T) {
	s := startServer(t)
	root, c := openRoot(t, s), connect(t, s)
	require.NoError(t, c.Create(t.Context(), bob, "swordfish", accounts.Settings{}))
	execute(t, root, "CREATE TABLE mysql.t (id INT)", "GRANT ALL ON mysql.* TO bob WITH GRANT OPTION", "GRANT ALL ON mysql.t TO bob WITH GRANT OPTION",
		"DELETE FROM mysql.global_priv WHERE User = 'bob'")
	powers, err := c.Powers(t.Context(), bob)
	require.NoError(t, err)
	want := map[string]bool{}
	for _, on := range []string{"* by a row in mysql.db", "t by a row in mysql.tables_priv"} {
		for _, p := range append(accounts.Privileges(strings.HasPrefix(on, "t")), "GRANT OPTION", "DELETE HISTORY") {
			want[fmt.Sprintf("%s on mysql.%s", p, on)] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), powers)
}
