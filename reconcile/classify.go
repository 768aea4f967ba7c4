package reconcile

import (
	"cmp"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// outcome says how a step ended, according to the error that it returned.
type outcome struct {
	step            *stepOptions
	state           state
	reason, message string
	err             error         // nil if the step succeeded or was skipped
	after           time.Duration // the delay that the step asks for; 0 for none
	jittered        time.Duration // the delay that Success asks for; 0 for none. Only if the step succeeded, jitter is added to it
	notBefore       time.Duration // the delay that the API server asks for; 0 for none
	retries         bool          // the pass is repeated after a backoff
	forbidden       bool          // a request was forbidden: see retriesForbiddenSoon for the delays
	explained       bool          // Success gave a reason: Ready shows it and the message
	halts           bool          // the later steps are skipped
	keepsConditions bool          // another writer sets the conditions
	yields          bool          // a later pass continues the work of the step
	panicked        any           // the value with which the step panicked; nil if it did not
	lowPriority     bool          // if only this delay asks for the next pass, that pass comes after the passes that events have triggered
}

const (
	reasonSucceeded = "Succeeded"
	reasonSkipped   = "Skipped"
	reasonFailed    = "Failed"
	reasonInvalid   = "Invalid"
	reasonConflict  = "Conflict"
	reasonForbidden = "Forbidden"
)

// classify returns the outcome of a step that returned err.
func classify(err error) outcome {
	o := classifyChain(err)
	if o.state != succeeded {
		o.err = err
		o.message = strings.ReplaceAll(err.Error(), "\n", "; ") // errors.Join puts each error on a line of its own
		o.message = strings.ToValidUTF8(o.message, "\uFFFD")    // the API server replaces invalid bytes too; otherwise each pass would find that the message has changed
	}
	return o
}

// classifyChain looks at err and at the errors that it wraps, from the outermost to the innermost. The first error of
// a known type decides the outcome. If classifyChain meets joined errors, it classifies each of them by itself.
func classifyChain(err error) outcome {
	reason := ""
	for e := err; e != nil; e = errors.Unwrap(e) {
		if own, ok := e.(Reasoner); ok { //nolint:errorlint // the chain is walked
			reason = cmp.Or(reason, own.Reason())
		}
		if isStalled(e) {
			inner := classifyChain(errors.Unwrap(e))
			return outcome{
				state: stalled, reason: cmp.Or(reason, reasonInvalid),
				notBefore: inner.notBefore, halts: inner.halts, keepsConditions: inner.keepsConditions,
			}
		}
		switch e := e.(type) { //nolint:errorlint // the same
		case *haltError:
			o := classifyChain(e.err).withReason(reason)
			o.halts = true
			return o
		case *keepConditionsError:
			o := classifyChain(e.err).withReason(reason)
			o.keepsConditions = true
			return o
		case *lowPriorityError:
			o := classifyChain(e.err).withReason(reason)
			o.lowPriority = true
			return o
		case *successError:
			o := outcome{reason: cmp.Or(e.reason, reasonSucceeded), message: e.message, explained: e.reason != ""}
			if e.exact {
				o.after = e.requeueAfter
			} else {
				o.jittered = e.requeueAfter
			}
			return o
		case Waiter:
			o := outcome{state: waiting}
			o.reason, o.after = e.Waiting()
			return o
		case interface{ Unwrap() []error }: // made by errors.Join or fmt.Errorf
			o := outcome{reason: reasonSucceeded}
			for _, joined := range e.Unwrap() {
				if joined != nil {
					o = merge(o, classifyChain(joined))
				}
			}
			return o.withReason(reason)
		}
	}
	if err == nil {
		return outcome{reason: reasonSucceeded}
	}
	return classifyUnknown(err).withReason(reason)
}

// merge returns the outcome of two joined errors. It is the worse outcome, with the delays and the flags of both. So a
// wait, a conflict or a halt never hides a failure. If both have succeeded, it is b. If both have the same other
// state, it is a.
func merge(a, b outcome) outcome {
	o := a
	if a.state == succeeded || b.state > a.state {
		o = b
	}
	o.after = earlier(a.after, b.after)
	o.jittered = earlier(a.jittered, b.jittered)
	o.notBefore = max(a.notBefore, b.notBefore)
	o.retries = a.retries || b.retries
	o.forbidden = a.forbidden || b.forbidden
	o.halts = a.halts || b.halts
	o.keepsConditions = a.keepsConditions || b.keepsConditions
	o.lowPriority = false // the other delay may be for something urgent
	return o
}

// withReason replaces the reason of the outcome by the reason of an outer error. It does so only for a conflict, a
// failure or a stalled step.
func (o outcome) withReason(reason string) outcome {
	if reason != "" && o.state.ending().takesReason {
		o.reason = reason
	}
	return o
}

// classifyUnknown classifies an error that is not from this package, by the answer of the API server.
func classifyUnknown(err error) outcome {
	o := outcome{notBefore: retryAfter(err)}
	switch {
	case isConflict(err):
		o.state, o.reason, o.retries = conflicted, reasonConflict, true
	case apierrors.IsForbidden(err): // the message names the verb and the resource, or the quota
		o.state, o.reason, o.forbidden = stalled, reasonForbidden, true
	case isRefused(err):
		o.state, o.reason = stalled, reasonInvalid
	default:
		o.state, o.reason, o.retries = failed, reasonFailed, true
	}
	return o
}

// isConflict reports whether another writer was faster, or the cache was behind. Then a new pass may succeed.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || isOtherUID(err)
}

// isOtherUID reports whether a patch named a UID, and the live object of that name has another one. The API server
// then answers Invalid, and not Conflict.
func isOtherUID(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// isStalled reports whether [Stalled] or controller-runtime's TerminalError made err itself. It does not look at
// errors that err wraps.
func isStalled(err error) bool {
	if _, ours := err.(*stalledError); ours { //nolint:errorlint // the chain is walked
		return true
	}
	theirs, ok := err.(interface{ Is(target error) bool })
	return ok && theirs.Is(ctrlreconcile.TerminalError(nil))
}

// isRefused reports whether the API server would answer the same request with the same error again.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// earlier returns the shorter of two delays. A delay of 0 or less means none.
func earlier(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// retryAfter returns the delay that the API server asks for (Retry-After), or 0.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}
