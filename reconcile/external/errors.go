package external

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

var (
	// ErrNotFound is returned by [Resource.Observe] if the thing does not exist. After any other error, the thing may or may not exist.
	ErrNotFound = calls.ErrNotFound

	// ErrExists is returned by [Resource.Create] if the API refuses the creation because the key is taken. The API must not have created
	// anything.
	ErrExists = calls.ErrExists
)

// Throttled returns the error to use if the API asks to wait, such as by status 429 and a header Retry-After. All objects of the server
// wait for this time, with the reason RateLimited. If after is zero, they wait for a minute.
func Throttled(after time.Duration, err error) error { return calls.Throttled(after, err) }

// Refused returns the error to use if the API has refused a request for good, such as by status 400 or 403. The request had no
// effect, and the API would refuse it again. With it, the step is stalled ([reconcile.Stalled]) with the reason, in CamelCase.
// After an error of [Resource.Create] that was made neither by Refused nor by [Throttled], the creation may or may not have had
// an effect.
func Refused(reason string, err error) error { return calls.Refused(reason, err) }

// Unreachable returns the error to use if a server does not answer, or if its answer says nothing about the request, such as status 503.
// The step does not call the server for a while: see [Resource.Server]. Errors of the network, and calls that exceed [Resource.Timeout],
// do not need Unreachable.
func Unreachable(err error) error { return calls.Unreachable(err) }

// Reasons of the conditions of [Step]. If a step of your own calls the same API, it may use them too. [Step] lists all reasons.
const (
	ReasonRateLimited = calls.ReasonRateLimited // the API asks to wait
	ReasonUnreachable = calls.ReasonUnreachable // the server does not answer
	ReasonBusy        = calls.ReasonBusy        // the server already handles the largest number of objects
)

const (
	reasonClaimed         = "Claimed"
	reasonExists          = "AlreadyExists"
	reasonCreating        = "Creating"
	reasonUnknown         = "CreationUnknown"
	reasonDeleting        = "Deleting"
	reasonInvalidKey      = "InvalidKey"
	reasonNotFound        = "NotFound"
	reasonPublishing      = "Publishing"
	reasonInvalidInterval = "InvalidInterval"
)
