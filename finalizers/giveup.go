package finalizers

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// Option is an option of [Finalize]: [GiveUpAfter] or [WithClock]. Without one, a cleanup is retried without limit.
type Option func(*settings)

type settings struct {
	now      func() time.Time
	limited  bool
	limit    time.Duration
	recorder events.EventRecorder
}

func newSettings(options []Option) *settings {
	s := &settings{now: time.Now}
	for _, o := range options {
		o(s)
	}
	return s
}

// GiveUpAfter limits the time in which a cleanup is retried, so that an object and its namespace cannot hang in deletion
// for ever. The time starts at the object's deletion timestamp. The first attempt that fails or waits after the limit is
// the last: the finalizer is removed, and a log entry and a warning event with the reason CleanupGivenUp name the error.
//
// The time also passes while the operator is down. Choose a limit longer than any outage, or the first failure after a long
// outage is the last attempt. A failure while the context is cancelled, as when the operator shuts down, is never the last
// attempt. In a namespace that is being deleted the API server refuses new events; then only the log has the error. The
// recorder comes from mgr.GetEventRecorder; nil means no event.
//
// A wait that is longer than the time left, or has no delay, is shortened to the time left: an error with the method
// Waiting() (reason string, after time.Duration) is wrapped in one that returns the shorter delay.
func GiveUpAfter(limit time.Duration, recorder events.EventRecorder) Option {
	return func(s *settings) { s.limited, s.limit, s.recorder = true, limit, recorder }
}

// WithClock sets the clock with which [GiveUpAfter] measures, for tests. The default is time.Now.
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

func (s *settings) timeLeft(obj client.Object) time.Duration {
	return obj.GetDeletionTimestamp().Add(s.limit).Sub(s.now())
}

func (s *settings) isOver(obj client.Object) bool { return s.limited && s.timeLeft(obj) <= 0 }

func (s *settings) report(ctx context.Context, obj client.Object, name string, failure error) {
	log.FromContext(ctx).Error(failure, "Gave up a cleanup; what it had to remove may still be there", "finalizer", name, "after", s.limit)
	if s.recorder == nil {
		return
	}
	note := "gave up " + name + " after " + s.limit.String() + ", what it had to remove may still be there: " + failure.Error()
	s.recorder.Eventf(obj, nil, corev1.EventTypeWarning, "CleanupGivenUp", "Finalize", "%s", eventnote.Cut(note))
}

// waiter has the methods of package reconcile's Waiter, which this package does not import.
type waiter interface {
	error
	Waiting() (reason string, after time.Duration)
}

// limitedWait is an error whose delay is shortened.
type limitedWait struct {
	error
	reason string
	after  time.Duration
}

func (w *limitedWait) Unwrap() error                                 { return w.error }
func (w *limitedWait) Waiting() (reason string, after time.Duration) { return w.reason, w.after }

// limitWait shortens a wait that would end after the time to give up. Joined errors stay as they are, because one of them
// may not be a wait.
func (s *settings) limitWait(obj client.Object, failure error) error {
	if !s.limited {
		return failure
	}
	for err := failure; err != nil; err = errors.Unwrap(err) {
		w, ok := err.(waiter) //nolint:errorlint // the chain is walked here, so that a joined error ends it
		if !ok {
			continue
		}
		reason, after := w.Waiting()
		if left := s.timeLeft(obj); left > 0 && (after <= 0 || after > left) {
			return &limitedWait{error: failure, reason: reason, after: left}
		}
		return failure
	}
	return failure
}
