package calls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile"
)

// An API says by these errors whether a thing exists.
var (
	ErrNotFound = errors.New("it does not exist")
	ErrExists   = errors.New("it exists already")
)

// These are the reasons if a pass could not call the API. Package external describes them.
const (
	ReasonRateLimited = "RateLimited"
	ReasonUnreachable = "Unreachable"
	ReasonBusy        = "Busy"
	ReasonPanicked    = "Panicked"
	ReasonNotReturned = "NotReturned"
)

// Throttled returns the error for an API that asks to wait.
func Throttled(after time.Duration, err error) error {
	if after <= 0 {
		after = time.Minute
	}
	return &throttledError{after, err}
}

type throttledError struct {
	after time.Duration
	err   error
}

func (e *throttledError) Error() string {
	return fmt.Sprintf("the API asks to wait: %v", e.err)
}
func (e *throttledError) Unwrap() error { return e.err }

// Waiting implements [reconcile.Waiter].
func (e *throttledError) Waiting() (reason string, after time.Duration) {
	return ReasonRateLimited, e.after
}

// Refused returns the error for a request that the API has refused for good.
func Refused(reason string, err error) error {
	return &refusedError{reconcile.Stalled(reason, err)}
}

type refusedError struct{ stalled error }

func (e *refusedError) Error() string { return e.stalled.Error() }
func (e *refusedError) Unwrap() error { return e.stalled }

// Unreachable returns the error for a server that does not answer.
func Unreachable(err error) error { return &unreachableError{err} }

type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "the server cannot be reached: " + e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// inWords is an error with the text of another one.
type inWords struct {
	text string
	err  error
}

func (e inWords) Error() string { return e.text }
func (e inWords) Unwrap() error { return e.err }

// withoutNames returns a network error with a text that is the same for all objects and connections. The text contains neither the
// URL of the request, which has the name of an object, nor the address of this machine, whose port differs between connections. While a
// server cannot be reached, the conditions of all waiting objects show the text of the last error. If that text changed each time, each
// change would be written to all of them.
func withoutNames(err error) error {
	text := err.Error()
	if sent, ok := errors.AsType[*url.Error](err); ok {
		text = strings.ReplaceAll(text, sent.Error(), sent.Err.Error())
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		target := *broken
		target.Source = nil
		text = strings.ReplaceAll(text, broken.Error(), target.Error())
	}
	return inWords{text, err}
}

// panicError is the error of a function that panicked. It says nothing about the server, and it is not known whether the call had
// an effect.
type panicError struct{ error }

// Reason implements [reconcile.Reasoner].
func (panicError) Reason() string { return ReasonPanicked }

// IsRefused reports whether the error says that the request had no effect.
func IsRefused(err error) bool { return IsFinal(err) || is[*throttledError](err) }

// IsFinal reports whether an error was made by [Refused].
func IsFinal(err error) bool { return is[*refusedError](err) }

// isNetwork reports whether an error is a network error: the client of net/http and the connections of package net return such errors.
func isNetwork(err error) bool { return is[net.Error](err) && !errors.Is(err, context.Canceled) }

// reasonOf returns the reason of an error of a server that cannot be reached. It is Unreachable if the error has no
// reason.
func reasonOf(err error) string {
	if given, ok := errors.AsType[reconcile.Reasoner](err); ok {
		return given.Reason()
	}
	return ReasonUnreachable
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
