package finalizers

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// timeLeft returns the time until GiveUpAfter has passed. If the result is zero or less, the next failure is the last
// attempt.
func (f *Finalizer) timeLeft(obj client.Object) time.Duration {
	now := f.Now
	if now == nil {
		now = time.Now
	}
	return obj.GetDeletionTimestamp().Add(f.GiveUpAfter).Sub(now())
}

func (f *Finalizer) isOver(obj client.Object) bool { return f.GiveUpAfter > 0 && f.timeLeft(obj) <= 0 }

// report writes the error of the last attempt to the log and to an event, because the cleanup may not have removed
// everything.
func (f *Finalizer) report(ctx context.Context, obj client.Object, failure error) {
	log.FromContext(ctx).Error(failure, "Gave up a cleanup; what it had to remove may still be there", "finalizer", f.Name, "after", f.GiveUpAfter)
	if f.Recorder == nil {
		return
	}
	note := "gave up " + f.Name + " after " + f.GiveUpAfter.String() + ", what it had to remove may still be there: " + failure.Error()
	f.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, "CleanupGivenUp", "Finalize", "%s", eventnote.Cut(note))
}

// waiter has the methods of the interface Waiter of package reconcile, which this package does not import.
type waiter interface {
	error
	Waiting() (reason string, after time.Duration)
}

// limitedWait wraps an error with which a cleanup waits, and has a shorter delay.
type limitedWait struct {
	error
	reason string
	after  time.Duration
}

func (w *limitedWait) Unwrap() error                                 { return w.error }
func (w *limitedWait) Waiting() (reason string, after time.Duration) { return w.reason, w.after }

// limitWait shortens the delay of an error with which a cleanup waits, if the delay would end after GiveUpAfter. It does not change
// joined errors, because one of them may be a failure.
func (f *Finalizer) limitWait(obj client.Object, failure error) error {
	if f.GiveUpAfter == 0 {
		return failure
	}
	for err := failure; err != nil; err = errors.Unwrap(err) {
		w, ok := err.(waiter) //nolint:errorlint // the chain is walked here, so that a joined error ends it
		if !ok {
			continue
		}
		reason, after := w.Waiting()
		if left := f.timeLeft(obj); left > 0 && (after <= 0 || after > left) {
			return &limitedWait{error: failure, reason: reason, after: left}
		}
		return failure
	}
	return failure
}
