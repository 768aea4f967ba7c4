package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcome is what became of a cleanup.
type Outcome string

const (
	// NotDeleted: the object is not being deleted, and nothing was done. This is when to go on reconciling.
	NotDeleted Outcome = "NotDeleted"
	// Absent: the object is being deleted, and the finalizer is not on it: it never was, or its cleanup is done.
	Absent Outcome = "Absent"
	// Finished: the cleanup succeeded and the finalizer is gone.
	Finished Outcome = "Finished"
	// GaveUp: the cleanup failed for longer than [GiveUpAfter] allows, and the finalizer is gone. Something may be left.
	GaveUp Outcome = "GaveUp"
	// Pending: the finalizer is still there, and the error says why.
	Pending Outcome = "Pending"
)

// removalTime is what the removal of a finalizer may take where the pass's own time is over.
const removalTime = 10 * time.Second

// Finalize runs the cleanup if the object is being deleted and has the finalizer, and takes the finalizer away when it
// succeeded. It does nothing to an object that is not being deleted, so that it can stand first in a reconciler.
//
// The cleanup has to be idempotent, and to count what is already gone as success. Its error is returned as it is, so that
// errors.Is and errors.As find what it holds, such as package reconcile's waits; only [GiveUpAfter] shortens a wait. To
// give up for a reason of its own, such as an annotation that a person sets, a cleanup returns nil.
//
// Other errors are [ErrInvalidName], before any request, and those of [Remove]: after a conflict (apierrors.IsConflict) the
// cleanup runs again. The outcome beside an error is [Pending].
func Finalize(
	ctx context.Context, c client.Client, obj client.Object, name string, cleanup func(context.Context) error, options ...Option,
) (Outcome, error) {
	if err := validate([]string{name}); err != nil {
		return Pending, err
	}
	if cleanup == nil {
		return Pending, fmt.Errorf("finalizer %q has no cleanup: use Remove to take it away without one", name)
	}
	switch {
	case obj.GetDeletionTimestamp().IsZero():
		return NotDeleted, nil
	case !slices.Contains(obj.GetFinalizers(), name):
		return Absent, nil
	}

	s := newSettings(options)
	failure := cleanup(ctx)
	// A cleanup that was interrupted, because the operator ends, has not failed.
	if failure != nil && (errors.Is(ctx.Err(), context.Canceled) || !s.isOver(obj)) {
		return Pending, s.limitWait(obj, failure)
	}
	if ctx.Err() != nil { // it took all the time that the pass has
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), removalTime)
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
