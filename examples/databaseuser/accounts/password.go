package accounts

import (
	"crypto/sha1" //nolint:gosec // see Differs
	"fmt"
	"strings"
	"unicode/utf8"
)

// Password prints, and is encoded, as (hidden). Convert it to string for what is in it. (Package fmt cannot ask a field that
// is not exported how it prints: keep none in such a field.)
type Password string

const hidden = "(hidden)"

// Format hides the password, whatever the verb.
func (Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the password in JSON, YAML and structured logs.
func (Password) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Validate says why the password cannot be, as an [*InvalidError], or nil. Spaces and line ends count, at the end too.
func (p Password) Validate() error {
	switch {
	case p == "":
		return invalid("password", "is empty")
	case !utf8.ValidString(string(p)):
		return invalid("password", "is not UTF-8")
	case strings.ContainsRune(string(p), 0):
		return invalid("password", "has a NUL in it, where many clients end it")
	}
	return nil
}

const nativePlugin = "mysql_native_password"

// Fingerprint stands for the password that an account has, as the server stores it. Two of them are equal if neither the
// password nor the way of logging in was changed in between. It is derived from the password: it prints as (hidden), and is
// for memory only.
type Fingerprint struct{ plugin, stored string }

// NewFingerprint is for what a server tells: the account's authentication plugin and what that has stored.
func NewFingerprint(plugin, stored string) Fingerprint {
	return Fingerprint{plugin, stored}
}

// Differs says that the password is certainly not what the server has stored. It can tell of mysql_native_password alone,
// MariaDB's default: other plugins store a salt, or cost much to compute.
func (f Fingerprint) Differs(p Password) bool {
	once := sha1.Sum([]byte(p)) //nolint:gosec // the plugin's own hash, to compare with
	twice := sha1.Sum(once[:])  //nolint:gosec // likewise
	return f.plugin == nativePlugin && f.stored != fmt.Sprintf("*%X", twice)
}

// Is says that the password is certainly what the server has stored, of the plugins of which it can tell.
func (f Fingerprint) Is(p Password) bool {
	return f.plugin == nativePlugin && !f.Differs(p)
}

// Format hides the fingerprint, whatever the verb.
func (Fingerprint) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the fingerprint in JSON, YAML and structured logs.
func (Fingerprint) MarshalText() ([]byte, error) { return []byte(hidden), nil }
