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
	// Waiting returns the reason of the condition, in CamelCase, and after which delay the step is run again. A delay of
	// zero means that an event triggers the next pass.
	Waiting() (reason string, after time.Duration)
}

// Reasoner is an error that knows the reason, in CamelCase, of its condition and its event.
type Reasoner interface {
	error
	Reason() string
}

// Success returns an error that means success, with a reason in CamelCase and a message. They appear in the condition of
// the step, and in Ready when all steps have succeeded; if several steps return one, those of the last step. The message
// must not change while nothing else does: it is written to the status.
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

// Wait returns an error that means that the step waits for something, with a reason in CamelCase. The step is run again
// after the delay requeueAfter. Zero means that an event triggers the next pass. The message must not change while nothing
// else does (no times, no counters): it is written to the status.
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
// condition Stalled. The step is run again in 10 minutes, or when an event triggers a pass. The reason is in CamelCase; if
// it is empty, that of err is used ([Reasoner]), or else "Invalid". If err is nil, Stalled returns nil, so that it can wrap
// a check.
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

// WithReason sets the reason, in CamelCase, of the condition and the event of an error. When the step is run again depends
// on err alone. If err is nil, WithReason returns nil.
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

// Halt returns an error that skips the later steps of the pass. The outcome of the step is that of err, which may be one of
// [Wait]; if err is nil, the step has succeeded.
//
// The conditions that the skipped steps report become Unknown. So does Ready, if no step waits or has failed and one of the
// skipped steps is not optional.
func Halt(err error) error { return &haltError{err} }

type haltError struct{ err error }

func (e *haltError) Error() string {
	if e.err == nil {
		return "the later steps are skipped"
	}
	return e.err.Error()
}

func (e *haltError) Unwrap() error { return e.err }

// KeepConditions returns an error that leaves all conditions which depend on the step as they are, because another writer
// sets them: the condition of the step, Ready, Reconciling and Stalled. The observed generation stays too. Otherwise the
// outcome of the step is that of err, which may be nil: an error is logged and retried.
func KeepConditions(err error) error { return &keepConditionsError{err} }

type keepConditionsError struct{ err error }

func (e *keepConditionsError) Error() string {
	if e.err == nil {
		return "the conditions are kept"
	}
	return e.err.Error()
}

func (e *keepConditionsError) Unwrap() error { return e.err }
