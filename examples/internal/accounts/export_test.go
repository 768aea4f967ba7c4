package accounts

import "github.com/go-sql-driver/mysql"

// NewInServersMode is New without the client's own SQL mode, to test what must hold in every mode.
func NewInServersMode(o Options) (*Client, error) { return newClient(o, "") }

// Statements returns the statements that the client sends to create an account, grant to it, and drop it.
func Statements(a Account, p Password, g Grant) (create, granted, drop string) {
	return createUser(a, p, Settings{}), grant(a, g), dropUser(a)
}

// PowersOf returns the powers of an account because of the lines of SHOW GRANTS for an account.
var PowersOf = powers

// IsLocked reports whether a line of SHOW CREATE USER is of a locked account.
var IsLocked = isLocked

// Refusal returns the error of a statement with a password that the server refuses.
func Refusal(e *mysql.MySQLError) error { return withoutText(refusal(e)) }

// Pattern returns a database's name as it is stored.
var Pattern = pattern

// PowersOfRow returns the powers of an account because of a row of its own in a table such as mysql.db.
func PowersOfRow(row map[string]string) []string { return grantOf(row).powers(true) }
