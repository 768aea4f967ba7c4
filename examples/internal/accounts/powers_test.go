package accounts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/examples/internal/accounts"
	"github.com/opblocks/opblocks/examples/internal/mariadb"
)

// TestPowers judges lines of SHOW GRANTS. The lines of MySQL are from its manual: no server is asked here.
func TestPowers(t *testing.T) {
	var (
		bob    = accounts.Account{User: "bob", Host: "%"}
		other  = accounts.Account{User: "bob", Host: "10.%"}
		nobody = accounts.Account{Host: "%"}
		public = accounts.Account{User: "PUBLIC"}
	)
	tests := map[string]struct {
		reason string
		holder accounts.Account // default: bob
		// stranger is true if the holder belongs to somebody else.
		stranger bool
		lines    []string
		want     []string
	}{
		"Nothing": {
			reason: "an account may log in", lines: []string{"GRANT USAGE ON *.* TO `bob`@`%` IDENTIFIED BY PASSWORD '*00' REQUIRE X509 WITH MAX_USER_CONNECTIONS 3"},
		},
		"Databases": {
			reason: "to use databases is what a DatabaseUser is for",
			lines: []string{"GRANT ALL PRIVILEGES ON `shop`.* TO `bob`@`%`", "GRANT SELECT (`a`, `b`), UPDATE ON `shop`.`items` TO `bob`@`%`",
				"GRANT SELECT ON `app\\_%`.* TO `bob`@`%`", "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `bob`@`%`",
				"GRANT EXECUTE ON PACKAGE BODY `shop`.`p` TO `bob`@`%`", "GRANT DELETE HISTORY ON `shop`.* TO `bob`@`%`"},
		},
		"Global":        {reason: "it is for every database", lines: []string{"GRANT SELECT, CREATE USER ON *.* TO `bob`@`%`"}, want: []string{"SELECT on *.*", "CREATE USER on *.*"}},
		"GlobalOption":  {reason: "without any other privilege", lines: []string{"GRANT USAGE ON *.* TO `bob`@`%` WITH GRANT OPTION"}, want: []string{"GRANT OPTION on *.*"}},
		"UnknownGlobal": {reason: "a later server may have others", lines: []string{"GRANT FLY TO THE MOON ON *.* TO `bob`@`%`"}, want: []string{"FLY TO THE MOON on *.*"}},
		"UnknownName":   {reason: "as before", lines: []string{"GRANT TELEPORT ADMIN ON *.* TO `bob`@`%`"}, want: []string{"TELEPORT ADMIN on *.*"}},
		"UnknownInDatabase": {
			reason: "nobody knows what it allows", lines: []string{"GRANT SELECT, TELEPORT ON `shop`.* TO `bob`@`%`"}, want: []string{"TELEPORT on shop.*"},
		},
		"UnknownLine":   {reason: "what is not understood is no proof", lines: []string{"ALLOW ALL"}, want: []string{"something unknown in the list of the server"}},
		"UnknownObject": {reason: "as before", lines: []string{"GRANT SELECT ON EVERYTHING TO `bob`@`%`"}, want: []string{"something unknown in the list of the server"}},
		"PartialRevoke": {
			reason: "MySQL: what is left is still for every other database",
			lines:  []string{"GRANT SELECT ON *.* TO `bob`@`%`", "REVOKE SELECT ON `mysql`.* FROM `bob`@`%`"},
			want:   []string{"SELECT on *.*", "something unknown in the list of the server"},
		},
		"Dynamic": {
			reason: "MySQL lists these in a line of their own",
			lines:  []string{"GRANT BACKUP_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO `bob`@`%` WITH GRANT OPTION"},
			want:   []string{"BACKUP_ADMIN on *.*", "SYSTEM_VARIABLES_ADMIN on *.*", "GRANT OPTION on *.*"},
		},
		"Role":         {reason: "it may get more later", lines: []string{"GRANT `admin` TO `bob`@`%` WITH ADMIN OPTION", "SET DEFAULT ROLE `admin` FOR `bob`@`%`"}, want: []string{"the role admin"}},
		"MySQLRole":    {reason: "its roles have hosts", lines: []string{"GRANT `admin`@`%` TO `bob`@`%`"}, want: []string{"the role admin"}},
		"RoleNamedOn":  {reason: "quoted, it is no word", lines: []string{"GRANT `ON` TO `bob`@`%`"}, want: []string{"the role ON"}},
		"Proxy":        {reason: "it is let in as another account", lines: []string{"GRANT PROXY ON ``@`%` TO `bob`@`%` WITH GRANT OPTION"}, want: []string{"PROXY"}},
		"System":       {reason: "accounts are stored there", lines: []string{"GRANT INSERT ON `mysql`.* TO `bob`@`%`"}, want: []string{"INSERT on mysql.*"}},
		"SystemCase":   {reason: "some servers ignore the case of names", lines: []string{"GRANT INSERT ON `MySQL`.`User` TO `bob`@`%`"}, want: []string{"INSERT on MySQL.User"}},
		"SystemColumn": {reason: "one column is enough", lines: []string{"GRANT UPDATE (`Priv`) ON `mysql`.`global_priv` TO `bob`@`%`"}, want: []string{"UPDATE on mysql.global_priv"}},
		"SystemUsage":  {reason: "it is no privilege", lines: []string{"GRANT USAGE ON `mysql`.* TO `bob`@`%`"}},
		"Pattern":      {reason: "it matches sys", lines: []string{"GRANT INSERT ON `s%`.* TO `bob`@`%`"}, want: []string{"INSERT on s%.*"}},
		"EscapedPattern": {
			reason: "a name with these characters is no pattern", lines: []string{"GRANT INSERT ON `my\\_ql`.* TO `bob`@`%`", "GRANT INSERT ON `\\%`.* TO `bob`@`%`"},
		},
		"EscapedLetter":   {reason: "it stands for itself", lines: []string{"GRANT INSERT ON `m\\ysql`.* TO `bob`@`%`"}, want: []string{`INSERT on m\ysql.*`}},
		"LiteralOnATable": {reason: "with a table the name is no pattern", lines: []string{"GRANT INSERT ON `s%`.`t` TO `bob`@`%`"}},
		"NamedStar":       {reason: "quoted, it is a database", lines: []string{"GRANT INSERT ON `*`.* TO `bob`@`%`"}},
		"UnquotedNames":   {reason: "sql_quote_show_create is off", lines: []string{"GRANT INSERT ON mysql.user TO bob@`%`", "GRANT SELECT ON shop.* TO bob@`%`"}, want: []string{"INSERT on mysql.user"}},
		"AnsiQuotes":      {reason: "the client's mode has no ANSI_QUOTES, and does not need to", lines: []string{`GRANT INSERT ON "mysql".* TO "bob"@"%"`}, want: []string{"INSERT on mysql.*"}},
		"GrantOption":     {reason: "it hands privileges to others", lines: []string{"GRANT SELECT ON `shop`.* TO `bob`@`%` WITH GRANT OPTION"}, want: []string{"GRANT OPTION on shop.*"}},
		"QuotedWords": {
			reason: "no name is taken for a word", lines: []string{"GRANT SELECT ON `a`` TO b ON *`.* TO `WITH GRANT OPTION`@`%` REQUIRE ISSUER 'WITH GRANT OPTION'"},
		},
		"OtherHost": {
			reason: "the server lets every bob use them whose host matches", holder: other,
			lines: []string{"GRANT SUPER ON *.* TO `bob`@`10.%`", "GRANT `admin` TO `bob`@`10.%`", "GRANT SELECT ON `shop`.* TO `bob`@`10.%`", "GRANT ALL PRIVILEGES ON `mysql`.* TO `bob`@`10.%`"},
			want:  []string{"ALL PRIVILEGES on mysql.* of 'bob'@'10.%'"},
		},
		"Stranger": {
			reason: "the account takes its logins, and so all that it can do counts", holder: other, stranger: true,
			lines: []string{"GRANT SUPER ON *.* TO `bob`@`10.%`", "GRANT `admin` TO `bob`@`10.%`", "GRANT SELECT ON `shop`.* TO `bob`@`10.%`"},
			want:  []string{"SUPER on *.* of 'bob'@'10.%'", "the role admin of 'bob'@'10.%'"},
		},
		"StrangerInDatabases": {
			reason: "to use databases is what a DatabaseUser is for", holder: other, stranger: true,
			lines: []string{"GRANT USAGE ON *.* TO `bob`@`10.%`", "GRANT SELECT ON `shop`.* TO `bob`@`10.%`"},
		},
		"Anonymous": {
			reason: "they are everybody's", holder: nobody,
			lines: []string{"GRANT RELOAD ON *.* TO ``@`%`", "GRANT INSERT ON `mysql`.* TO ``@`%`"}, want: []string{"INSERT on mysql.* of ''@'%'"},
		},
		"Public": {
			reason: "it is a role of everybody", holder: public,
			lines: []string{"GRANT `admin` TO PUBLIC", "GRANT SHOW DATABASES ON *.* TO PUBLIC", "GRANT SELECT ON `shop`.* TO PUBLIC"},
			want:  []string{"the role admin of PUBLIC", "SHOW DATABASES on *.* of PUBLIC"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			holder := tc.holder
			if holder == (accounts.Account{}) {
				holder = bob
			}
			if diff := cmp.Diff(tc.want, accounts.PowersOf(bob, holder, tc.lines, tc.stranger)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestIsLocked reads lines of SHOW CREATE USER. The lines of MySQL are from its manual.
func TestIsLocked(t *testing.T) {
	for line, want := range map[string]bool{
		"CREATE USER `bob`@`%`": false,
		"CREATE USER `bob`@`%` IDENTIFIED BY PASSWORD '*00' REQUIRE SSL WITH MAX_USER_CONNECTIONS 3 ACCOUNT LOCK PASSWORD EXPIRE":                                    true,
		"CREATE USER `ACCOUNT LOCK`@`%` REQUIRE ISSUER 'ACCOUNT LOCK'":                                                                                               false,
		"CREATE USER 'bob'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$''x' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT": false,
		"CREATE USER 'bob'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$''x' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT LOCK PASSWORD HISTORY DEFAULT":   true,
	} {
		assert.Equal(t, want, accounts.IsLocked(line), line)
	}
}

// TestTooManyToJudge has more accounts of a user name than are judged: Powers says so, and asks for the privileges of none.
func TestTooManyToJudge(t *testing.T) {
	s := startServer(t, mariadb.WithGeneralLog())
	root, c := openRoot(t, s), connect(t, s)
	a := accounts.Account{User: "many", Host: "127.0.0.1"}
	var all []accounts.Account
	for i := range accounts.MaxJudged {
		all = append(all, accounts.Account{User: "many", Host: fmt.Sprintf("10.0.0.%02d", i)})
		execute(t, root, "CREATE USER `many`@`"+all[i].Host+"`")
	}
	execute(t, root, "CREATE USER `Many`", "CREATE USER `man_`", "CREATE ROLE `many`", "GRANT SUPER ON *.* TO many@'10.0.0.00'", "ALTER USER many@'10.0.0.01' ACCOUNT LOCK")
	found, err := c.AccountsOf(t.Context(), "many")
	require.NoError(t, err)
	assert.Equal(t, all, found, "neither a role nor a name that differs in case")
	powers, err := c.Powers(t.Context(), a, all...)
	require.NoError(t, err)
	assert.Equal(t, []string{"SUPER on *.* of 'many'@'10.0.0.00'", "those of 'many'@'10.0.0.01', which is locked"}, powers)
	powers, err = c.Powers(t.Context(), a)
	require.NoError(t, err)
	assert.Empty(t, powers, "what another account can do on the server as a whole counts only for a stranger")

	execute(t, root, "CREATE USER `many`@`%`", "CREATE USER `many`@`11.%`")
	found, err = c.AccountsOf(t.Context(), "many")
	require.NoError(t, err)
	assert.Len(t, found, accounts.MaxJudged+1, "which is enough to see that there are too many")
	asked := showGrants(t, s)
	powers, err = c.Powers(t.Context(), a, all...)
	require.NoError(t, err)
	assert.Equal(t, []string{"perhaps those of more than 64 accounts, which are too many to judge"}, powers)
	assert.Equal(t, asked, showGrants(t, s))
}

// showGrants returns how often somebody has asked for the privileges of an account.
func showGrants(t *testing.T, s *mariadb.Server) int {
	t.Helper()
	log, err := os.ReadFile(s.GeneralLog())
	require.NoError(t, err)
	return strings.Count(string(log), "SHOW GRANTS FOR")
}
