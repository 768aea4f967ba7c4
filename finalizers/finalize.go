package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcome is the result of [Finalize].
type Outcome string

const (
	// NotDeleted means that the object is not being deleted, and that nothing was done. The reconciler goes on.
	NotDeleted Outcome = "NotDeleted"
	// Absent means that the object is being deleted and does not have the finalizer: it never had it, or the cleanup is
	// done.
	Absent Outcome = "Absent"
	// Finished means that the cleanup succeeded and the finalizer is removed.
	Finished Outcome = "Finished"
	// GaveUp means that the cleanup failed for longer than [GiveUpAfter] allows, and that the finalizer is removed. Some of
	// what the cleanup should have removed may be left.
	GaveUp Outcome = "GaveUp"
	// Pending comes with every error, and only with an error. The finalizer may still be on the object.
	Pending Outcome = "Pending"
)

// removalTimeout limits the removal of a finalizer if the context has ended already.
const removalTimeout = 10 * time.Second

// Finalize runs the cleanup if the object is being deleted and has the finalizer, and removes the finalizer if the cleanup
// succeeded. If the object is not being deleted, it does nothing, so a reconciler can call it first, for every object.
//
// The cleanup must be idempotent, and must return nil for what is already removed. Finalize returns its error, or, with
// [GiveUpAfter], an error that wraps it and waits for a shorter time: errors.Is and errors.As find what it wraps, such as
// the wait errors of package reconcile. After the limit of [GiveUpAfter] Finalize logs the error and returns nil. A cleanup
// that wants to give up for its own reason, such as an annotation that a person sets, returns nil.
//
// If the context ends during a cleanup that succeeds, because its deadline passes or the operator shuts down, Finalize still
// removes the finalizer, for up to 10 seconds.
//
// Other errors are [ErrInvalidName], before any request; an error if cleanup is nil; and the errors of [Remove]. After
// a conflict (apierrors.IsConflict) the cleanup runs again in the next call. With an error the outcome is always
// [Pending]; without one it never is.
func Finalize(
	ctx context.Context, c client.Client, obj client.Object, name string, cleanup func(context.Context) error, options ...Option,
) (Outcome, error) {
	if err := validate([]string{name}); err != nil {
		return Pending, err
	}
	if cleanup == nil {
		return Pending, fmt.Errorf("finalizer %q has no cleanup: use Remove to remove it without one", name)
	}
	switch {
	case obj.GetDeletionTimestamp().IsZero():
		return NotDeleted, nil
	case !slices.Contains(obj.GetFinalizers(), name):
		return Absent, nil
	}

	s := newSettings(options)
	failure := cleanup(ctx)
	// A cleanup that was interrupted because the operator shuts down has not failed.
	if failure != nil && (errors.Is(ctx.Err(), context.Canceled) || !s.isOver(obj)) {
		return Pending, s.limitWait(obj, failure)
	}
	if ctx.Err() != nil { // its deadline passed, or the operator shuts down: the finalizer is removed all the same
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
		defer cancel()
	}
	_, err := Remove(ctx, c, obj, name)
	switch {
	case err != nil:
		return Pending, err
	case failure != nil:
		s.report(ctx, obj, name, failure)
		return GaveUp, nil
	}
	return Finished, nil
}
