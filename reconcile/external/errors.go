package external

import (
	"errors"
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile"
)

var (
	// ErrNotFound is returned by [Resource.Observe] if the thing does not exist outside of the cluster. Any other error leaves open whether it does.
	ErrNotFound = errors.New("it does not exist")

	// ErrExists is returned by [Resource.Create] if the API refuses the creation because the key is taken. Nothing was created then.
	ErrExists = errors.New("it exists already")
)

// Throttled returns the error for an API that asks to wait, such as by status 429 and a header Retry-After. All objects of the server wait for that
// time, with the reason RateLimited. If after is zero, it waits for a minute.
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

// Refused returns the error for a request that the API has refused for good, such as by status 400 or 403: it had no effect, and the
// same request would be refused again. It is stalled ([reconcile.Stalled]) with the reason, in CamelCase. An error of
// [Resource.Create] that is made neither by Refused nor by [Throttled] leaves open whether the creation had an effect.
func Refused(reason string, err error) error {
	return &refusedError{reconcile.Stalled(reason, err)}
}

type refusedError struct{ stalled error }

func (e *refusedError) Error() string { return e.stalled.Error() }
func (e *refusedError) Unwrap() error { return e.stalled }

// Unreachable returns the error for a server that gives no answer, or one such as status 503 that says nothing of the request. The step
// spares the server for a while: see [Resource.Server]. Errors of the network and calls that end by [Resource.Timeout] need no such mark.
func Unreachable(err error) error { return &unreachableError{err} }

type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "the server cannot be reached: " + e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// isRefused reports whether an error says that the request had no effect.
func isRefused(err error) bool {
	if _, refused := errors.AsType[*refusedError](err); refused {
		return true
	}
	_, throttled := errors.AsType[*throttledError](err)
	return throttled
}

// The reasons of the conditions that the step sets.
const (
	ReasonRateLimited = "RateLimited"     // the API asks to wait
	ReasonUnreachable = "Unreachable"     // the server gives no answer
	ReasonBusy        = "Busy"            // the server handles as many objects as it may
	ReasonClaimed     = "Claimed"         // the key belongs to another object
	ReasonExists      = "AlreadyExists"   // the key belongs to somebody else
	ReasonCreating    = "Creating"        // it was created, and the API does not show it yet
	ReasonUnknown     = "CreationUnknown" // the answer to a creation was lost, and nothing tells what became of it
	ReasonDeleting    = "Deleting"        // it is being deleted, and the API still shows it
	ReasonInvalidKey  = "InvalidKey"      // the object has an empty key
	ReasonNotFound    = "NotFound"        // it does not exist, and is not to be created
	ReasonPublishing  = "Publishing"      // the Secret lacks a value
	ReasonPanicked    = "Panicked"        // a function of the resource panicked
	ReasonNotReturned = "NotReturned"     // a call has not returned although its context has ended

	ReasonInvalidInterval = "InvalidInterval" // a success, but [IntervalAnnotation] is not a duration
)
