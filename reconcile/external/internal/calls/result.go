package calls

import (
	"errors"

	"github.com/opblocks/opblocks/reconcile"
)

// result is the result of a call to the API, as a label of the metrics.
type result string

const (
	resultSucceeded   result = "succeeded"
	resultNotFound    result = "not_found"
	resultRefused     result = "refused"
	resultThrottled   result = "throttled"
	resultUnreachable result = "unreachable"
	resultWaiting     result = "waiting"
	resultFailed      result = "failed"
)

// resultOf returns the result of a call. late is true if the call has exceeded its timeout.
func resultOf(err error, late bool) result {
	switch {
	case err == nil:
		return resultSucceeded
	case is[*panicError](err):
		return resultFailed
	case !late && IsFinal(err):
		return resultRefused
	case late, is[*unreachableError](err), isNetwork(err):
		return resultUnreachable
	case is[*throttledError](err):
		return resultThrottled
	case IsRefused(err), errors.Is(err, ErrExists):
		return resultRefused
	case errors.Is(err, ErrNotFound):
		return resultNotFound
	case is[reconcile.Waiter](err):
		return resultWaiting
	}
	return resultFailed
}
