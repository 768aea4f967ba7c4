// Package accounts manages accounts of a MariaDB or MySQL server: it creates, changes, grants, reads and drops them.
//
// [Database] is what a controller needs, [Client] does it on a server, and package accountstest keeps it in memory.
//
// # Quoting
//
// All statements are made in sql.go. Names are quoted by backticks, which mean the same in every SQL mode. Only passwords
// are text literals: there the session is in the mode NO_BACKSLASH_ESCAPES, which the client sets on every connection, so
// that ' is the only character with a meaning. It also sets the character set utf8mb4, whatever the server makes of
// clients. What is read is asked for with parameters. A connection runs one statement at a time, so that none can bring
// a second one along.
//
// A database's name in GRANT is a pattern unless a table follows; the client escapes it, so that app_1 is not app21 too.
//
// # What is refused
//
// Some names are not what they seem to the server. These are an [InvalidError] before any statement:
//
//   - a trailing space: the server drops it, and would let in somebody else's name
//   - a user name between apostrophes: at a login the server takes them off, so that nobody could use the account
//   - NUL, text that is not UTF-8, and in names characters beyond U+FFFF, which the server's own tables cannot hold
//   - user names longer than 80 characters (MySQL itself refuses more than 32), and those of the server's own accounts
//     and of the client itself
//   - hosts that no client can have, see [CanonicalHost]
//   - databases of the server itself, names with the prefix #mysql50#, and names that are longer than 64 characters when escaped
//
// # Passwords
//
// They are a type that prints as (hidden). A server's error about a statement with a password is passed on only where its
// text is known to hold names and nothing else. MariaDB's own general log and its process list show the statement in
// whole, the password included.
//
// # What the client's account needs
//
// CREATE USER on *.*; SELECT on the tables mysql.user, mysql.db and mysql.tables_priv; and what it shall grant, WITH GRANT
// OPTION, on the databases where it shall. RELOAD and SUPER are not needed. CREATE USER is much: it can change every
// account's password.
package accounts
