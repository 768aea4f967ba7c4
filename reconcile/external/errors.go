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

// Reasons of the step's conditions that a step of your own may use too, if it talks to the same API. [Step] lists all.
const (
	ReasonRateLimited = calls.ReasonRateLimited // the API asks to wait
	ReasonUnreachable = calls.ReasonUnreachable // the server does not answer
	ReasonBusy        = calls.ReasonBusy        // the server handles as many objects as it may
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
