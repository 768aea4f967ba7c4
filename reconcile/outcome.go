package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Waiting is an error that says that nothing is wrong, and that the step has to be tried again:
// after the delay, or when an event brings a pass if the delay is zero. Any package may have
// such errors; [Wait] makes one.
type Waiting interface {
	error
	// Waiting gives the reason of a condition, in CamelCase, and the delay.
	Waiting() (reason string, after time.Duration)
}

// Reasoned is an error that brings the reason of a condition, in CamelCase.
type Reasoned interface {
	error
	Reason() string
}

// Wait says that the step waits for something, for a reason in CamelCase. It is tried again
// after the delay; zero means that an event will tell. The message must not change while
// nothing else does (no times, no counters): it is written to the status.
func Wait(reason string, after time.Duration, format string, args ...any) error {
	return &waitError{reason: reason, after: after, message: fmt.Sprintf(format, args...)}
}

type waitError struct {
	reason, message string
	after           time.Duration
}

func (e *waitError) Error() string                                 { return e.message }
func (e *waitError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }

// Halt keeps later steps from running in this pass. With an error, which may be that of
// [Wait], it is the step's outcome; with nil, the step has succeeded.
//
// What later steps report becomes Unknown, and so does Ready if one of them is not optional.
func Halt(err error) error { return &haltError{err} }

type haltError struct{ err error }

func (e *haltError) Error() string {
	if e.err == nil {
		return "nothing more to do"
	}
	return e.err.Error()
}

func (e *haltError) Unwrap() error { return e.err }

// Terminal says that the step cannot succeed until somebody changes something, for a reason in
// CamelCase: the object is shown as Stalled and tried again in 10 minutes, or on an event. Of a
// nil error it makes nil, so that it can wrap a check.
func Terminal(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{reason: reason, err: err}
}

type terminalError struct {
	reason string
	err    error
}

func (e *terminalError) Error() string  { return e.err.Error() }
func (e *terminalError) Unwrap() error  { return e.err }
func (e *terminalError) Reason() string { return e.reason }

// state is what became of a step.
type state int

const (
	succeeded state = iota
	skipped
	waiting
	conflicted // somebody wrote meanwhile, or the cache is behind: no failure
	failed
	terminal
)

func (s state) String() string {
	return [...]string{"succeeded", "skipped", "waiting", "conflicted", "failed", "terminal"}[s]
}

// outcome is what became of a step, ready to be shown.
type outcome struct {
	step            int // index of the step, or noStep
	state           state
	reason, message string
	after           time.Duration
	notBefore       time.Duration
	retries         bool // by backoff
	halts           bool
	unshown         bool
	err             error
}

const (
	reasonSucceeded = "Succeeded"
	reasonSkipped   = "Skipped"
	reasonFailed    = "Failed"
	reasonInvalid   = "Invalid"
	reasonConflict  = "Conflict"
	reasonForbidden = "Forbidden"
)

// outcomeOf classifies a step's error. Of several joined errors each is looked at, and the worst
// is shown: a failure is never hidden by a wait, a conflict or a halt beside it.
func outcomeOf(err error) outcome {
	o := outcome{reason: reasonSucceeded}
	for _, leaf := range leaves(err) {
		one := outcomeOfOne(leaf)
		halts, after, retries := o.halts || one.halts, o.after, o.retries || one.retries
		notBefore, unshown := max(o.notBefore, one.notBefore), o.unshown || one.unshown
		if one.after > 0 && (after == 0 || one.after < after) {
			after = one.after
		}
		if one.state > o.state || o.state == succeeded {
			o = one
		}
		o.halts, o.after, o.retries, o.notBefore, o.unshown = halts, after, retries, notBefore, unshown
	}
	if o.state != succeeded {
		o.err = err
		o.message = strings.ReplaceAll(err.Error(), "\n", "; ") // errors.Join puts each on a line
		o.message = strings.ToValidUTF8(o.message, "\uFFFD")    // as it is stored, or it would differ in each pass
	}
	return o
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

func outcomeOfOne(err error) outcome {
	if halt, ok := errors.AsType[*haltError](err); ok {
		o := outcomeOf(halt.err)
		o.halts = true
		return o
	}
	if unshown, ok := errors.AsType[*unshownError](err); ok {
		o := outcomeOf(unshown.err)
		o.unshown = true
		return o
	}
	if done, ok := errors.AsType[*doneError](err); ok {
		return outcome{reason: done.reason, message: done.message, after: done.again}
	}
	o := outcome{reason: reasonFailed, err: err}
	if waits, ok := errors.AsType[Waiting](err); ok {
		o.state = waiting
		o.reason, o.after = waits.Waiting()
		return o
	}
	o.notBefore = retryAfter(err)
	switch {
	case isConflict(err):
		o.state, o.retries = conflicted, true
	case apierrors.IsForbidden(err): // its message names the verb and the resource, or the quota
		o.state, o.reason = terminal, reasonForbidden
	case isTerminal(err):
		o.state, o.reason = terminal, reasonInvalid
	default:
		o.state, o.retries = failed, true
	}
	if reasoned, ok := errors.AsType[Reasoned](err); ok {
		o.reason = cmp.Or(reasoned.Reason(), o.reason)
	}
	return o
}

func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || isNamesake(err)
}

// isNamesake recognises the answer to a patch with the UID of an object that has made room for one
// of the same name: not a conflict, but "invalid".
func isNamesake(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}

// retryAfter gives how long the API server asks to wait; 0 if it does not.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// isTerminal recognises what the API server would answer again to the same request.
func isTerminal(err error) bool {
	_, own := errors.AsType[*terminalError](err)
	return own || errors.Is(err, ctrlreconcile.TerminalError(nil)) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}
