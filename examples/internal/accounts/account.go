package accounts

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxUserLength is the maximum length of a user name, in characters. MySQL allows 32.
const MaxUserLength = 80

// Account is a user name and the host it may log in from. The case of user names matters, the case of hosts does not:
// see [CanonicalHost].
type Account struct{ User, Host string }

// String returns the account as the server writes it in its messages.
func (a Account) String() string { return "'" + a.User + "'@'" + a.Host + "'" }

// reserved are accounts of the server itself, on MariaDB or on MySQL.
var reserved = []string{"root", "mariadb.sys", "mysql.sys", "mysql.session", "mysql.infoschema"}

// Validate returns an [*InvalidError] if there can be no such account.
func (a Account) Validate() error {
	host, err := CanonicalHost(a.Host)
	switch {
	case a.User == "":
		return invalid("user name", "is empty")
	case utf8.RuneCountInString(a.User) > MaxUserLength:
		return invalid("user name", "is longer than %d characters", MaxUserLength)
	case slices.Contains(reserved, a.User), strings.EqualFold(a.User, "PUBLIC"): // PUBLIC is a role: nobody could log in
		return invalid("user name", "is %s, an account of the server itself", a.User)
	case len(a.User) > 1 && strings.HasPrefix(a.User, "'") && strings.HasSuffix(a.User, "'"):
		return invalid("user name", "begins and ends with an apostrophe; at a login the server would take off both")
	case err != nil:
		return err
	case host != a.Host:
		return invalid("host", "is not in lower case")
	}
	return validateName("user name", a.User)
}

// validateName returns an error for a name that the tables of the server cannot hold.
func validateName(what, name string) error {
	switch {
	case !utf8.ValidString(name):
		return invalid(what, "is not UTF-8")
	case strings.ContainsRune(name, 0):
		return invalid(what, "has a NUL in it")
	case strings.HasSuffix(name, " "):
		return invalid(what, "ends with a space, which the server would drop")
	case strings.ContainsFunc(name, func(r rune) bool { return r > 0xFFFF }):
		return invalid(what, "has a character beyond U+FFFF in it, which the server cannot store in names")
	}
	return nil
}
