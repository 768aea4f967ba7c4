package accounts

import (
	"fmt"
	"strings"
)

// sessionMode is an expression for the SQL mode of the client's sessions: backslashes are not special in literals,
// values that do not fit are errors, and GRANT never creates an account. (In MySQL since 8.0 it never does, and the
// mode does not exist.)
const sessionMode = `CONCAT('NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES', IF(` + isMariaDB + `, ',NO_AUTO_CREATE_USER', ''))`

const isMariaDB = `VERSION() LIKE '%MariaDB%'`

// Queries of an account. mysql.user is a view on MariaDB and a table on MySQL.
const selectTableGrants = "SELECT Db, Table_name, Table_priv FROM mysql.tables_priv WHERE User = ? AND Host = ?"

const selectAccount = "SELECT plugin, COALESCE(authentication_string, ''), ssl_type, x509_subject, max_user_connections, max_connections, " +
	"max_questions, max_updates, @@lower_case_table_names, " + isMariaDB + " FROM mysql.user WHERE User = ? AND Host = ?"

// selectExpired selects whether the password of an account has expired: by hand, or since it was last changed longer ago than the account's or the
// server's password lifetime. A lifetime of 0 has no end. MariaDB has 0 as the time of the last change if it has expired by hand, and -1 as
// the lifetime for the server's.
func selectExpired(isMariaDB bool) string {
	if !isMariaDB {
		return "SELECT password_expired = 'Y' OR COALESCE(password_lifetime, @@default_password_lifetime) > 0 AND " +
			"DATE_ADD(password_last_changed, INTERVAL COALESCE(password_lifetime, @@default_password_lifetime) DAY) < NOW() " +
			"FROM mysql.user WHERE User = ? AND Host = ?"
	}
	const lifetime = "COALESCE(NULLIF(CAST(JSON_VALUE(Priv, '$.password_lifetime') AS INT), -1), @@default_password_lifetime)"
	const changed = "CAST(JSON_VALUE(Priv, '$.password_last_changed') AS INT)"
	return "SELECT COALESCE(" + changed + " = 0 OR " + lifetime + " > 0 AND " + changed + " + " + lifetime + " * 86400 < UNIX_TIMESTAMP(), FALSE) " +
		"FROM mysql.global_priv WHERE User = ? AND Host = ?"
}

// selectAccounts selects the accounts of a user name, whose case matters. The host may be empty: such an account is
// for every host. On MariaDB, roles have no host either. MySQL's roles are accounts.
func selectAccounts(isMariaDB bool) string {
	if !isMariaDB {
		return "SELECT User, Host FROM mysql.user WHERE User = ? ORDER BY Host" + limitJudged
	}
	return "SELECT User, Host FROM mysql.user WHERE User = ? AND is_role = 'N' ORDER BY Host" + limitJudged
}

// selectHolders selects the accounts of a user name, the anonymous ones, and MariaDB's PUBLIC.
func selectHolders(isMariaDB bool) string {
	if !isMariaDB {
		return "SELECT User, Host FROM mysql.user WHERE User = ? OR User = '' ORDER BY User DESC, Host" + limitJudged
	}
	return "SELECT User, Host FROM mysql.user WHERE (User = ? OR User = '') AND is_role = 'N' OR User = 'PUBLIC' AND Host = '' " +
		"ORDER BY User DESC, Host" + limitJudged
}

// limitJudged selects one row more than are judged, which shows that there are too many.
var limitJudged = fmt.Sprint(" LIMIT ", MaxJudged+1)

// selectLeftovers selects the rows of a table, such as mysql.db, of a user name and of the anonymous user that belong to no
// account and to no role. It selects all columns: which privileges there are depends on the server. The rows are sorted by their
// key, which is in the first columns.
func selectLeftovers(table string) string {
	return "SELECT * FROM " + table + " p WHERE (User = ? OR User = '') " +
		"AND NOT EXISTS (SELECT * FROM mysql.user u WHERE u.User = p.User AND u.Host = p.Host) ORDER BY 1, 2, 3, 4"
}

// selectRolesMapping selects the roles of an account, also if the account does not exist: it would get them if it were
// created.
const selectRolesMapping = "SELECT User, Host, Role FROM mysql.roles_mapping WHERE User = ? AND Host = ? ORDER BY Role"

func showGrants(holder Account) string {
	if holder == public {
		return "SHOW GRANTS FOR PUBLIC"
	}
	return "SHOW GRANTS FOR " + account(holder)
}

func showCreateUser(a Account) string { return "SHOW CREATE USER " + account(a) }

// selectDatabaseGrants selects the privileges in the order of the variable privileges.
func selectDatabaseGrants() string {
	columns := make([]string, len(privileges))
	for i, p := range privileges {
		columns[i] = p.column + " = 'Y'"
	}
	return "SELECT Db, " + strings.Join(columns, ", ") + " FROM mysql.db WHERE User = ? AND Host = ?"
}

// createUser fails if the account exists: IF NOT EXISTS would take it over, or keep its password.
func createUser(a Account, p Password, s Settings) string {
	return "CREATE USER " + account(a) + " IDENTIFIED BY " + literal(string(p)) + " " + options(s)
}

func setPassword(a Account, p Password) string {
	return "ALTER USER " + account(a) + " IDENTIFIED BY " + literal(string(p))
}

func setSettings(a Account, s Settings) string { return "ALTER USER " + account(a) + " " + options(s) }

func dropUser(a Account) string { return "DROP USER IF EXISTS " + account(a) }

func grant(a Account, g Grant) string {
	return "GRANT " + list(g) + " ON " + object(g) + " TO " + account(a)
}

func revoke(a Account, g Grant) string {
	return "REVOKE " + list(g) + " ON " + object(g) + " FROM " + account(a)
}

// list returns the privileges. They come from the enumeration above, never from user input.
func list(g Grant) string { return strings.Join(Normalize([]Grant{g})[0].Privileges, ", ") }

// options lists every setting: ALTER USER keeps those that it does not list.
func options(s Settings) string {
	require := map[Require]string{RequireSSL: "SSL", RequireX509: "X509"}[s.Require]
	switch {
	case s.Mark != "":
		require = "SUBJECT " + literal(string(s.Mark))
	case require == "":
		require = "NONE"
	}
	return fmt.Sprintf("REQUIRE %s WITH MAX_USER_CONNECTIONS %d MAX_CONNECTIONS_PER_HOUR %d MAX_QUERIES_PER_HOUR %d MAX_UPDATES_PER_HOUR %d",
		require, s.Limits.MaxUserConnections, s.Limits.MaxConnectionsPerHour, s.Limits.MaxQueriesPerHour, s.Limits.MaxUpdatesPerHour)
}

func account(a Account) string { return identifier(a.User) + "@" + identifier(a.Host) }

// object returns the database or table of a grant. The database is a pattern unless a table follows.
func object(g Grant) string {
	if g.Table != "" {
		return identifier(g.Database) + "." + identifier(g.Table)
	}
	return identifier(pattern(g.Database)) + ".*"
}

// identifier quotes a name. Between backticks only the backtick is special, in every SQL mode.
func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal quotes a string for sessions in the mode NO_BACKSLASH_ESCAPES.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

var wildcards = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// pattern returns a pattern that matches only this database.
func pattern(database string) string { return wildcards.Replace(database) }

// exactly returns the database that a pattern matches; one is false if it matches several.
func exactly(pattern string) (database string, one bool) {
	var name strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%', c == '_':
			return "", false
		case c == '\\' && i+1 < len(pattern):
			i++
			name.WriteByte(pattern[i])
		default:
			name.WriteByte(c)
		}
	}
	return name.String(), true
}
