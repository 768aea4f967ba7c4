package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

// Waiter is the error of a step that waits for something and has not failed. [Wait] returns a Waiter. Errors of any
// package can implement it.
type Waiter interface {
	error
	// Waiting returns the reason of the condition, in CamelCase, and the delay after which the next pass comes at the latest.
	// A delay of zero asks for no pass: only an event triggers it.
	Waiting() (reason string, after time.Duration)
}

// Reasoner is an error with its own reason, in CamelCase. The reason appears in the condition and the event of a failure,
// a conflict or [Stalled]. [WithReason] returns a Reasoner. Errors of any package can implement it.
type Reasoner interface {
	error
	// Reason returns the reason. It must not change while nothing else changes.
	Reason() string
}

// Success returns an error that means success, with a reason in CamelCase and a message. Both appear in the condition of the step.
// If all steps that are not [NamedStep.Optional] have succeeded, Ready has this reason and message too. If several of these steps
// return a Success, Ready has the reason and message of the last one. If the reason is empty, Ready shows nothing of this Success,
// and the condition of the step has the reason Succeeded and the message. The message must not change while nothing else changes
// (no times, no counters), because each change is written to the status.
//
// The next pass comes at the latest after requeueAfter plus up to a tenth, so that objects do not run at the same time. A
// delay of zero asks for no pass: only an event triggers it.
func Success(reason string, requeueAfter time.Duration, format string, args ...any) error {
	return &successError{reason: reason, message: fmt.Sprintf(format, args...), requeueAfter: requeueAfter}
}

// SuccessUntil is [Success] for a step that has something to do at a certain time. The next pass comes at the latest after
// exactly requeueAfter: nothing is added.
func SuccessUntil(reason string, requeueAfter time.Duration, format string, args ...any) error {
	return &successError{reason: reason, message: fmt.Sprintf(format, args...), requeueAfter: requeueAfter, exact: true}
}

type successError struct {
	reason, message string
	requeueAfter    time.Duration
	exact           bool // no jitter is added
}

func (e *successError) Error() string { return e.message }

// Wait returns an error that means that the step waits for something, with a reason in CamelCase and a message. The next pass
// comes at the latest after requeueAfter. A delay of zero asks for no pass: only an event triggers it. The message must not
// change while nothing else changes (no times, no counters), because each change is written to the status.
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
// condition Stalled, unless the step is [NamedStep.Optional]. The next pass comes at the latest after 10 minutes ([Retries]
// sets this) plus up to a tenth, because webhooks, roles and quotas change without an event. controller-runtime's TerminalError
// means the same. The reason is in CamelCase. If the reason is empty, the reason of err is used ([Reasoner]), or else
// "Invalid". If err is nil, Stalled returns nil, so a check can be passed to it directly.
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
	if inner, ok := errors.AsType[Reasoner](e.err); ok && e.reason == "" {
		return inner.Reason()
	}
	return e.reason
}

// WithReason returns err with a reason, in CamelCase, for the condition and the event of a failure, a conflict or [Stalled].
// [Wait], every other [Waiter] and [Success] keep their own reason. WithReason does not change anything else: neither the
// outcome nor when the next pass comes. If err is nil, WithReason returns nil.
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

// Halt returns an error that skips the later steps of the pass. err decides the outcome of the step itself, often by [Wait]. If
// err is nil, the step has succeeded.
//
// The conditions that the skipped steps report become Unknown. Ready becomes Unknown too, with three exceptions:
//   - If all skipped steps are [NamedStep.Optional], they do not change Ready.
//   - If another step that is not optional waits or has failed, Ready is False.
//   - If another step that is not optional has met a conflict or returned [KeepConditions], Ready stays as it is.
func Halt(err error) error { return &haltError{err} }

type haltError struct{ err error }

func (e *haltError) Error() string {
	if e.err == nil {
		return "the later steps are skipped"
	}
	return e.err.Error()
}

func (e *haltError) Unwrap() error { return e.err }

// KeepConditions returns an error after which the conditions that depend on the step stay as they are: the condition of the step and,
// unless the step is [NamedStep.Optional], Ready, Reconciling and Stalled. The observed generation stays too. It is for a step whose
// conditions another writer sets. err decides the rest of the outcome: a failure is logged and retried. If err is nil, the step has
// succeeded.
func KeepConditions(err error) error { return &keepConditionsError{err} }

type keepConditionsError struct{ err error }

func (e *keepConditionsError) Error() string {
	if e.err == nil {
		return "the conditions are kept"
	}
	return e.err.Error()
}

func (e *keepConditionsError) Unwrap() error { return e.err }

// LowPriority returns an error after which the next pass has a low priority: passes that an event has triggered run before it. The
// priority is low only if nothing but the delay of err asks for the next pass. LowPriority is for a step that polls: a person who has
// changed an object does not have to wait for thousands of polls. err decides the rest of the outcome, often by [Success] or [Wait]. After
// a failure the next pass keeps the priority of this one. If err is nil, LowPriority returns nil. If err joins errors, LowPriority has to
// be the outermost.
//
// The priority is -100, as controller-runtime gives it to the objects that exist when the operator starts. It needs controller-runtime's
// priority queue, which is the default (UsePriorityQueue).
func LowPriority(err error) error {
	if err == nil {
		return nil
	}
	return &lowPriorityError{err}
}

type lowPriorityError struct{ err error }

func (e *lowPriorityError) Error() string { return e.err.Error() }
func (e *lowPriorityError) Unwrap() error { return e.err }

// Yielded is the reason of a step that continues in a later pass, see [Yield].
const Yielded = turns.Yielded

// Yield lets other objects be reconciled during long work, such as a statement for each of a thousand grants. Call it before each call to
// an API outside of the cluster, with the context of the step. It returns nil while the pass may continue. When the pass has made its
// number of calls, or its time has passed ([Reconciler.WithTurns]), Yield returns a [Wait] with the reason [Yielded]: return that error
// from the step. The next pass runs after the objects that are waiting at that time, and has to find out by itself what is left to do. If
// the conditions are about the present spec, they stay as they are until then.
//
// The first call of Yield in a step of a pass returns nil, so each pass makes progress. Outside of a pass Yield returns nil. In the
// functions of package external it always returns nil, except in Update and Delete: a later pass could not continue in the middle of the
// other functions.
func Yield(ctx context.Context) error {
	pass := passcontext.FromContext(ctx)
	if pass == nil || !passcontext.HasTurn(ctx) {
		return nil
	}
	return pass.Spend(passcontext.ByFunction)
}
