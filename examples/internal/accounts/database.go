package accounts

import "context"

// MaxJudged is the largest number of accounts whose privileges Powers reads to judge one account: the accounts of the user name, the
// anonymous accounts, and PUBLIC. Powers sends a query for each of them.
const MaxJudged = 64

// Database manages the accounts of a server. Invalid input is refused with an [*InvalidError] before any statement is sent. If
// the server cannot be reached, the error is an [*UnreachableError]: the statement may or may not have been executed. Other
// refusals of the server are a [*StatementError].
type Database interface {
	// Lookup returns the state of an account, or nil if there is none. It never reports an error as absence.
	Lookup(ctx context.Context, a Account) (*State, error)

	// AccountsOf returns the accounts of a user name, sorted by host, without roles. The host of an account that somebody wrote by
	// hand may be one that [Account.Validate] refuses. It returns at most [MaxJudged] + 1 accounts.
	AccountsOf(ctx context.Context, user string) ([]Account, error)

	// Powers returns what whoever logs in as the account can do besides using databases, in a few words each: privileges on the
	// server as a whole or in its own databases, roles, PROXY, GRANT OPTION. The account need not exist: some privileges of
	// other accounts would hold for it too, and so would those that are left of accounts that are gone. It returns nothing for
	// what this package itself grants.
	//
	// The strangers are accounts of the same user name that belong to somebody else. All that they can do counts, also what only
	// they themselves can do, and a lock. If more than [MaxJudged] accounts would have to be judged, Powers says only that.
	Powers(ctx context.Context, a Account, strangers ...Account) ([]string, error)

	// Create creates an account, with a mark if the settings have one. It returns [ErrExists] if the account exists,
	// whatever its password. It also returns [ErrExists] if the account does not exist, but the server has privileges
	// for it.
	Create(ctx context.Context, a Account, p Password, s Settings) error

	// SetPassword changes the password of an account. It returns [ErrNotFound] if the account does not exist. Open
	// sessions continue.
	SetPassword(ctx context.Context, a Account, p Password) error

	// SetSettings changes all settings of an account. It returns [ErrNotFound] if the account does not exist.
	SetSettings(ctx context.Context, a Account, s Settings) error

	// Drop drops an account and its grants. It succeeds if the account does not exist. Open sessions continue.
	Drop(ctx context.Context, a Account) error

	// Grant grants privileges. It returns [ErrNotFound] if the account does not exist. It succeeds if they were granted
	// before.
	Grant(ctx context.Context, a Account, g Grant) error

	// Revoke revokes privileges. It succeeds if they were not granted, or if the account does not exist.
	Revoke(ctx context.Context, a Account, g Grant) error
}
