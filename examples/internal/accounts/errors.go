package accounts

import (
	"errors"
	"fmt"
)

var (
	// ErrExists is returned for an account that exists already.
	ErrExists = errors.New("the account exists already")

	// ErrNotFound is returned for an account that does not exist.
	ErrNotFound = errors.New("there is no such account")
)

// InvalidError is input that no server accepts. No statement was sent.
type InvalidError struct {
	What string // such as "user name"
	Why  string // such as "is empty"
}

func (e *InvalidError) Error() string { return "the " + e.What + " " + e.Why }

func invalid(what, why string, args ...any) error {
	return &InvalidError{What: what, Why: fmt.Sprintf(why, args...)}
}

// UnreachableError means that the server could not be reached: it is down, does not answer, or refuses the login. The text
// stays the same as long as the cause does.
type UnreachableError struct {
	Address string
	Reason  string
	Err     error
}

func (e *UnreachableError) Error() string {
	return "the database at " + e.Address + " cannot be reached: " + e.Reason
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// StatementError is the server's refusal of a statement. The statement is not part of it.
type StatementError struct {
	Number  uint16 // such as 1227
	State   string // SQLSTATE, such as 42000
	Message string // empty if it might hold a password
}

func (e *StatementError) Error() string {
	text := fmt.Sprintf("the database refused: error %d (%s)", e.Number, e.State)
	if e.Message == "" {
		return text
	}
	return text + ": " + e.Message
}
