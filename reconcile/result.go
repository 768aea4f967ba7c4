package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// Waiter is an error of a step that waits for something while nothing is wrong. [Wait] returns one. Errors of any package
// can implement it.
type Waiter interface {
	error
	// Waiting returns the reason of the condition, in CamelCase, and the delay after which the step is run again. A delay of
	// zero means that an event triggers the next pass.
	Waiting() (reason string, after time.Duration)
}

// Reasoner is an error that knows the reason, in CamelCase, of its condition and its event.
type Reasoner interface {
	error
	// Reason returns the reason. It must not change while nothing else does.
	Reason() string
}

// Success returns an error that means success, with a reason in CamelCase and a message. They appear in the condition of the
// step, and in Ready when all steps have succeeded. If several steps return one, Ready has those of the last step that is
// not [Optional]. The message must not change while nothing else does (no times, no counters), because each change is
// written to the status.
//
// The step is run again after the delay requeueAfter, plus up to a tenth, so that objects do not run at the same time. Zero
// means that an event triggers the next pass.
func Success(reason string, requeueAfter time.Duration, format string, args ...any) error {
	return &successError{reason: reason, message: fmt.Sprintf(format, args...), requeueAfter: requeueAfter}
}

type successError struct {
	reason, message string
	requeueAfter    time.Duration
}

func (e *successError) Error() string { return e.message }

// Wait returns an error that means that the step waits for something, with a reason in CamelCase and a message. The step is
// run again after the delay requeueAfter. Zero means that an event triggers the next pass. The message must not change while
// nothing else does (no times, no counters), because each change is written to the status.
func Wait(reason string, requeueAfter time.Duration, format string, args ...any) error {
	return &waitError{reason: reason, message: fmt.Sprintf(format, args...), requeueAfter: requeueAfter}
}

type waitError struct {
	reason, message string
	requeueAfter    time.Duration
}

func (e *waitError) Error() string { return e.message }

func (e *waitError) Waiting() (reason string, after time.Duration) { return e.reason, e.requeueAfter }

// Stalled returns an error that means that the step cannot succeed until somebody changes something. The object gets the
// condition Stalled, unless the step is [Optional]. The step is run again in 10 minutes, plus up to a tenth, or when an
// event triggers a pass. controller-runtime's TerminalError means the same. The reason is in CamelCase; if it is empty, that
// of err is used ([Reasoner]), or else "Invalid". If err is nil, Stalled returns nil, so that it can wrap a check.
func Stalled(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &stalledError{reason: reason, err: err}
}

type stalledError struct {
	reason string
	err    error
}

func (e *stalledError) Error() string { return e.err.Error() }
func (e *stalledError) Unwrap() error { return e.err }

func (e *stalledError) Reason() string {
	if reasoner, ok := errors.AsType[Reasoner](e.err); ok && e.reason == "" {
		return reasoner.Reason()
	}
	return e.reason
}

// WithReason returns err with another reason, in CamelCase, for the condition and the event. It replaces the reason of a
// failure, a conflict or [Stalled], but not that of a [Waiter] or of [Success]. When the step is run again depends on err
// alone. If err is nil, WithReason returns nil.
func WithReason(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &reasonError{reason: reason, err: err}
}

type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string  { return e.err.Error() }
func (e *reasonError) Unwrap() error  { return e.err }
func (e *reasonError) Reason() string { return e.reason }

// Halt returns an error that skips the later steps of the pass. The outcome of the step is that of err, such as one of
// [Wait]. If err is nil, the step has succeeded.
//
// The conditions that the skipped steps report become Unknown. So does Ready, if one of the skipped steps is not [Optional]
// and no step that is not [Optional] waits or has failed.
func Halt(err error) error { return &haltError{err} }

type haltError struct{ err error }

func (e *haltError) Error() string {
	if e.err == nil {
		return "the later steps are skipped"
	}
	return e.err.Error()
}

func (e *haltError) Unwrap() error { return e.err }

// KeepConditions returns an error that keeps the outcome of the step out of the conditions, because another writer sets
// them. The condition of the step and the observed generation stay as they are. So do Ready, Reconciling and Stalled, unless
// the step is [Optional]. In all else the outcome is that of err: a failure is logged and retried, and nil is success.
func KeepConditions(err error) error { return &keepConditionsError{err} }

type keepConditionsError struct{ err error }

func (e *keepConditionsError) Error() string {
	if e.err == nil {
		return "the conditions are kept"
	}
	return e.err.Error()
}

func (e *keepConditionsError) Unwrap() error { return e.err }
