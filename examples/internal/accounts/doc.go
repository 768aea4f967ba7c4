// Package accounts manages accounts of a MariaDB or MySQL server: it creates, changes, grants, reads and drops them.
//
// [Database] is the interface that a controller needs. [Client] implements it on a server, and package accountstest in memory.
//
// # Quoting
//
// All statements are built in sql.go. Names are quoted with backticks, which mean the same in every SQL mode. Only passwords
// are string literals. For them the client sets the SQL mode NO_BACKSLASH_ESCAPES on every connection, so that ' is the only
// special character. It also sets the character set utf8mb4, whatever the server's default for clients is. Queries use
// parameters. A connection runs one statement at a time, so that none can contain a second one.
//
// In GRANT, the name of a database is a pattern unless a table follows. The client escapes it, so that app_1 does not match
// app21.
//
// # What is refused
//
// The server does not take some names as they are. They are refused with an [InvalidError] before any statement is sent:
//
//   - a trailing space: the server drops it, so that the account would have another name
//   - a user name between apostrophes: at a login the server removes them, so that nobody could use the account
//   - NUL, text that is not UTF-8, and in names characters beyond U+FFFF, which the server's own tables cannot hold
//   - user names longer than 80 characters (MySQL itself refuses more than 32), and the user names of the server's own
//     accounts and of the client itself
//   - hosts that no client can have, see [CanonicalHost]
//   - databases of the server itself, names with the prefix #mysql50#, and names that are longer than 64 characters when escaped
//
// # Passwords
//
// They have a type that prints as (hidden). The server's error text for a statement with a password is returned only if it is
// known to contain nothing but names. MariaDB's general log and process list show the whole statement, including the password.
//
// # What the client's account needs
//
// CREATE USER on *.*; SELECT on mysql.*, without which the server does not show the grants of others; and the privileges that it
// grants, WITH GRANT OPTION, on their databases. RELOAD and SUPER are not needed. CREATE USER is powerful: it allows changing the password of
// every account.
package accounts
