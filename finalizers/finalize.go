package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Finalizer is the name of a finalizer, and the cleanup that has to succeed before it is removed.
type Finalizer struct {
	// Name is a domain, a slash and a name, such as "example.com/account"; see [Ensure].
	Name string
	// Cleanup is required; see [Finalize] for what it must do.
	Cleanup func(context.Context) error

	// GiveUpAfter limits the time in which the cleanup is retried, so that the deletion of an object and its namespace cannot
	// hang for ever. The time starts at the object's deletion timestamp. After the limit, the first attempt that fails or waits
	// is the last one: the finalizer is removed, and a log entry and a warning event with the reason CleanupGivenUp name the
	// error. 0 means no limit.
	//
	// The time also passes while the operator is down. Choose a limit longer than any outage: otherwise the first failure after
	// a long outage is the last attempt. A failure while the context is cancelled, as when the operator shuts down, is never
	// the last attempt.
	//
	// A cleanup waits if it returns an error with the method Waiting() (reason string, after time.Duration). If its delay is
	// zero, or is longer than the time until the limit, Finalize returns an error that wraps it and has the time until the
	// limit as its delay.
	GiveUpAfter time.Duration
	// Recorder emits the event, and comes from mgr.GetEventRecorder. If it is nil, no event is emitted. In a namespace that is
	// being deleted the API server refuses new events; then only the log has the error.
	Recorder events.EventRecorder
	// Now is the clock for GiveUpAfter. nil means time.Now. A test sets it.
	Now func() time.Time
}

// removalTimeout limits the request that removes a finalizer after the context has ended.
const removalTimeout = 10 * time.Second

// Finalize reports whether the object is being deleted. If it is, Finalize runs the cleanup of each finalizer that the object has. If a
// cleanup succeeds, Finalize removes the finalizer. If the object is not being deleted, Finalize does nothing, so a reconciler can call
// it first, for every object.
//
// List the finalizers in the order in which their resources are created. Finalize runs the cleanups in reverse order, and begins a
// cleanup only after it has removed the finalizer of the cleanup before. The order of the finalizers on the object does not matter.
//
// A cleanup must be idempotent. If the thing to remove is already gone, it must return nil. Finalize returns the error of the cleanup.
// With [Finalizer.GiveUpAfter], it may return an error that wraps this error and has a shorter delay. errors.Is and errors.As find the
// wrapped errors, such as the wait errors of package reconcile. After that limit Finalize logs the error and continues. If a cleanup
// wants to give up for its own reason, such as an annotation that a person sets, it returns nil.
//
// If the context ends during a cleanup that succeeds, because its deadline passes or the operator shuts down, Finalize still
// removes the finalizer. The removal may take up to 10 seconds.
//
// Invalid arguments are errors before any request, whether or not the object is being deleted. Invalid are a wrong name, a name that
// is listed twice, a nil cleanup, and a limit below zero. All other errors are errors of [Remove]. After a conflict
// (apierrors.IsConflict) the next call runs the cleanup again.
func Finalize(ctx context.Context, c client.Client, obj client.Object, list ...Finalizer) (deleted bool, err error) {
	deleted = !obj.GetDeletionTimestamp().IsZero()
	if err := validateFinalizers(list); err != nil || !deleted {
		return deleted, err
	}
	for i := range slices.Backward(list) {
		if err := list[i].finalize(ctx, c, obj); err != nil {
			return true, err
		}
	}
	return true, nil
}

// finalize runs the cleanup if the object, which is being deleted, has the finalizer.
func (f *Finalizer) finalize(ctx context.Context, c client.Client, obj client.Object) error {
	if !slices.Contains(obj.GetFinalizers(), f.Name) {
		return nil
	}
	failure := f.Cleanup(ctx)
	// A cleanup that was interrupted because the operator shuts down does not count as a failure.
	if failure != nil && (errors.Is(ctx.Err(), context.Canceled) || !f.isOver(obj)) {
		return f.limitWait(obj, failure)
	}
	if ctx.Err() != nil { // the deadline passed, or the operator shuts down; the finalizer is removed in any case
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
		defer cancel()
	}
	if _, err := Remove(ctx, c, obj, f.Name); err != nil {
		return err
	}
	if failure != nil {
		f.report(ctx, obj, failure)
	}
	return nil
}

// validateFinalizers checks all arguments before the first request. So a mistake shows up at once, and not only when
// an object is deleted.
func validateFinalizers(list []Finalizer) error {
	for i := range list {
		f := &list[i]
		if err := validate([]string{f.Name}); err != nil {
			return err
		}
		switch {
		case slices.ContainsFunc(list[:i], func(earlier Finalizer) bool { return earlier.Name == f.Name }):
			return fmt.Errorf("invalid finalizer %q: it is listed twice", f.Name)
		case f.Cleanup == nil:
			return fmt.Errorf("finalizer %q has no cleanup: use Remove to remove it without one", f.Name)
		case f.GiveUpAfter < 0:
			return fmt.Errorf("finalizer %q gives up after %s: give it a limit above zero, or 0 for none", f.Name, f.GiveUpAfter)
		}
	}
	return nil
}
