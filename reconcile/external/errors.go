package external

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

var (
	// ErrNotFound is returned by [Resource.Observe] if the thing does not exist outside of the cluster. Any other error leaves open whether it does.
	ErrNotFound = calls.ErrNotFound

	// ErrExists is returned by [Resource.Create] if the API refuses the creation because the key is taken. Nothing was created then.
	ErrExists = calls.ErrExists
)

// Throttled returns the error for an API that asks to wait, such as by status 429 and a header Retry-After. All objects of the server wait for that
// time, with the reason RateLimited. If after is zero, it waits for a minute.
func Throttled(after time.Duration, err error) error { return calls.Throttled(after, err) }

// Refused returns the error for a request that the API has refused for good, such as by status 400 or 403: it had no effect, and the
// same request would be refused again. It is stalled ([reconcile.Stalled]) with the reason, in CamelCase. An error of
// [Resource.Create] that is made neither by Refused nor by [Throttled] leaves open whether the creation had an effect.
func Refused(reason string, err error) error { return calls.Refused(reason, err) }

// Unreachable returns the error for a server that does not answer, or one such as status 503 that says nothing of the request. The step
// spares the server for a while: see [Resource.Server]. Errors of the network and calls that end by [Resource.Timeout] need no such mark.
func Unreachable(err error) error { return calls.Unreachable(err) }

// The reasons of the conditions that the step sets.
const (
	ReasonRateLimited = calls.ReasonRateLimited // the API asks to wait
	ReasonUnreachable = calls.ReasonUnreachable // the server does not answer
	ReasonBusy        = calls.ReasonBusy        // the server handles as many objects as it may
	ReasonClaimed     = "Claimed"               // the key belongs to another object
	ReasonExists      = "AlreadyExists"         // the key belongs to somebody else
	ReasonCreating    = "Creating"              // it was created, and the API does not show it yet
	ReasonUnknown     = "CreationUnknown"       // the answer to a creation was lost, and nothing tells what became of it
	ReasonDeleting    = "Deleting"              // it is being deleted, and the API still shows it
	ReasonInvalidKey  = "InvalidKey"            // the object has an empty key
	ReasonNotFound    = "NotFound"              // it does not exist, and is not to be created
	ReasonPublishing  = "Publishing"            // the Secret lacks a value
	ReasonPanicked    = calls.ReasonPanicked    // a function of the resource panicked
	ReasonNotReturned = calls.ReasonNotReturned // a call has not returned although its context has ended

	ReasonInvalidInterval = "InvalidInterval" // a success, but [IntervalAnnotation] is not a duration
)
