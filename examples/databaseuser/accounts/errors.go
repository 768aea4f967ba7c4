package accounts

import (
	"errors"
	"fmt"
)

var (
	// ErrExists says that there is such an account already.
	ErrExists = errors.New("the account exists already")

	// ErrNotFound says that there is no such account.
	ErrNotFound = errors.New("there is no such account")
)

// InvalidError says that something cannot be, on any server. Nothing was sent.
type InvalidError struct {
	What string // such as "user name"
	Why  string // such as "is empty"
}

func (e *InvalidError) Error() string { return "the " + e.What + " " + e.Why }

func invalid(what, why string, args ...any) error {
	return &InvalidError{What: what, Why: fmt.Sprintf(why, args...)}
}

// UnreachableError says that the server could not be asked: it is not there, does not answer, or does not let us in.
// The text is the same as long as the cause is.
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
