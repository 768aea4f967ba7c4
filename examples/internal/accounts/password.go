package accounts

import (
	"crypto/sha1" //nolint:gosec // see Differs
	"fmt"
	"strings"
	"unicode/utf8"
)

// Password is printed and encoded as (hidden). Convert it to string to get the value. Do not keep one in an unexported field:
// package fmt cannot call its methods there, and prints the value.
type Password string

const hidden = "(hidden)"

// Format hides the password, whatever the verb.
func (Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the password in JSON, YAML and structured logs.
func (Password) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Validate returns an [*InvalidError] if the password is not possible. Spaces and line ends are part of it, also at the end.
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

// Fingerprint is what the server stores for the password of an account. Two fingerprints are equal if neither the password nor
// the authentication plugin was changed in between. It is derived from the password: it prints as (hidden), and is for memory
// only.
type Fingerprint struct{ plugin, stored string }

// NewFingerprint returns the fingerprint of what a server stores: the authentication plugin of the account, and its data.
func NewFingerprint(plugin, stored string) Fingerprint {
	return Fingerprint{plugin, stored}
}

// Differs reports whether the password is certainly not the stored one. It works only for mysql_native_password, MariaDB's
// default, and returns false for all other plugins: these store a salt, or are expensive to compute.
func (f Fingerprint) Differs(p Password) bool {
	once := sha1.Sum([]byte(p)) //nolint:gosec // the plugin's own hash, to compare with
	twice := sha1.Sum(once[:])  //nolint:gosec // likewise
	return f.plugin == nativePlugin && f.stored != fmt.Sprintf("*%X", twice)
}

// Is reports whether the password is certainly the stored one. Like Differs, it works only for mysql_native_password.
func (f Fingerprint) Is(p Password) bool {
	return f.plugin == nativePlugin && !f.Differs(p)
}

// Format hides the fingerprint, whatever the verb.
func (Fingerprint) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the fingerprint in JSON, YAML and structured logs.
func (Fingerprint) MarshalText() ([]byte, error) { return []byte(hidden), nil }
