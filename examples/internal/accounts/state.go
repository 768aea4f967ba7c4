package accounts

import "strings"

// Require is what a connection needs besides the password.
type Require string

// Requirements.
const (
	RequireNone  Require = "none"
	RequireSSL   Require = "ssl"
	RequireX509  Require = "x509"
	requireOther Require = "specified" // an issuer, a subject or a cipher, set by somebody else
)

// Limits of an account, for all its connections together. Zero means no limit.
type Limits struct {
	MaxUserConnections    int64 // at the same time
	MaxConnectionsPerHour int64
	MaxQueriesPerHour     int64
	MaxUpdatesPerHour     int64
}

// Settings of an account besides its password. The zero value of Require means none.
type Settings struct {
	Require Require
	Limits  Limits

	// Mark names who creates the account. While an account has a mark, nobody can log in: the server requires a client
	// certificate whose subject is the mark. SetSettings without a mark takes it off. With a mark, Require is ignored.
	Mark Mark
}

// Mark is the subject of a client certificate that cannot exist: the subject of a certificate begins with a slash. It is the one free
// text that both MariaDB and MySQL store with an account.
type Mark string

const maxMarkLength = 128

// Validate returns an [*InvalidError] if the mark could be the subject of a certificate, or is not plain text.
func (m Mark) Validate() error {
	isPlain := func(r rune) bool {
		return r == ' ' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if len(m) > maxMarkLength || strings.ContainsFunc(string(m), func(r rune) bool { return !isPlain(r) }) {
		return invalid("mark", "is not at most %d letters, digits, spaces and dashes", maxMarkLength)
	}
	return nil
}

// Validate returns an [*InvalidError] if the settings are not possible.
func (s Settings) Validate() error {
	switch s.Require {
	case "", RequireNone, RequireSSL, RequireX509:
	default:
		return invalid("requirement", "is none of %s, %s and %s", RequireNone, RequireSSL, RequireX509)
	}
	l := s.Limits
	if least := min(l.MaxUserConnections, l.MaxConnectionsPerHour, l.MaxQueriesPerHour, l.MaxUpdatesPerHour); least < 0 {
		return invalid("limits", "have %d among them", least)
	}
	return s.Mark.Validate()
}

// State is the state of an account on the server.
type State struct {
	Settings
	Fingerprint Fingerprint
	Grants      []Grant // those that this package could have granted; sorted

	// Locked is true if somebody has locked the account: nobody can log in. This package never locks or unlocks one.
	Locked bool

	// Expired is true if the password has expired: nobody can use the account before it has another password. SetPassword ends it, also with
	// the same password.
	Expired bool

	// NamesIgnoreCase is true if this server stores the names of databases and tables in lower case.
	NamesIgnoreCase bool
}

// Missing returns what is wanted and not granted.
func (s State) Missing(want []Grant) []Grant {
	if s.NamesIgnoreCase {
		want = lower(want)
	}
	return Subtract(want, s.Grants)
}

// Surplus returns what the account has of what was granted to it, and what is no longer wanted.
func (s State) Surplus(granted, want []Grant) []Grant {
	if s.NamesIgnoreCase {
		granted, want = lower(granted), lower(want)
	}
	theirs := Subtract(s.Grants, granted) // others have granted it
	return Subtract(s.Grants, append(theirs, want...))
}
