package accounts

import "context"

// Database is a server's accounts. What is not valid is refused by an [*InvalidError] before any statement. A server that
// cannot be asked is an [*UnreachableError]: nothing is known then, and what was asked for may have been done. Other
// refusals of the server are a [*StatementError].
type Database interface {
	// Lookup reads an account; nil if there is none. It never takes an error for an absence.
	Lookup(ctx context.Context, a Account) (*State, error)

	// Create creates an account; [ErrExists] if it is there, whatever its password.
	Create(ctx context.Context, a Account, p Password, s Settings) error

	// SetPassword changes an account's password; [ErrNotFound] if there is no such account. Sessions that are open stay so.
	SetPassword(ctx context.Context, a Account, p Password) error

	// SetSettings changes all settings of an account; [ErrNotFound] if there is no such account.
	SetSettings(ctx context.Context, a Account, s Settings) error

	// Drop drops an account, and with it what it was granted. That it is not there is a success. Sessions that are open
	// stay so.
	Drop(ctx context.Context, a Account) error

	// Grant grants; [ErrNotFound] if there is no such account. That it was granted before is a success.
	Grant(ctx context.Context, a Account, g Grant) error

	// Revoke revokes. That it was not granted, or that there is no such account, is a success.
	Revoke(ctx context.Context, a Account, g Grant) error
}
