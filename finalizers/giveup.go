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

// Option changes how [Finalize] treats a cleanup that does not succeed.
type Option func(*settings)

type settings struct {
	now      func() time.Time
	bounded  bool
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

// GiveUpAfter bounds a cleanup, so that an object, and the namespace that it is in, need not hang for ever. The first attempt
// that fails or waits when this long has passed since the object's deletion timestamp is the last one: the finalizer
// goes, and a warning event (reason CleanupGivenUp) and the log say what error was left. Without this option cleanup is
// tried for ever.
//
// The time also runs while the operator is down: choose it longer than any outage, or one failure after a long one is
// the end. In a namespace that is being deleted the API server refuses new events, and the log alone tells. The recorder
// may be nil; mgr.GetEventRecorder makes one.
//
// A wait that is longer than the time left, or without a delay, is shortened to it: an error that has the method
// Waiting() (reason string, after time.Duration) is then wrapped in one that says so.
func GiveUpAfter(limit time.Duration, recorder events.EventRecorder) Option {
	return func(s *settings) { s.bounded, s.limit, s.recorder = true, limit, recorder }
}

// WithClock lets a test hold the clock. The default is time.Now.
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

func (s *settings) left(obj client.Object) time.Duration {
	return obj.GetDeletionTimestamp().Add(s.limit).Sub(s.now())
}

func (s *settings) isOver(obj client.Object) bool { return s.bounded && s.left(obj) <= 0 }

func (s *settings) report(ctx context.Context, obj client.Object, name string, failure error) {
	log.FromContext(ctx).Error(failure, "Gave up a cleanup; what it had to remove may still be there", "finalizer", name, "after", s.limit)
	if s.recorder == nil {
		return
	}
	note := "gave up " + name + " after " + s.limit.String() + ", what it had to remove may still be there: " + failure.Error()
	s.recorder.Eventf(obj, nil, corev1.EventTypeWarning, "CleanupGivenUp", "Finalize", "%s", eventnote.Cut(note))
}

// waiting is package reconcile's interface of the same name.
type waiting interface {
	error
	Waiting() (reason string, after time.Duration)
}

type limitedWait struct {
	error
	reason string
	after  time.Duration
}

func (w *limitedWait) Unwrap() error                                 { return w.error }
func (w *limitedWait) Waiting() (reason string, after time.Duration) { return w.reason, w.after }

// limitWait lets nobody wait past the time to give up. Joined errors stay as they are: one of them may be no wait.
func (s *settings) limitWait(obj client.Object, failure error) error {
	if !s.bounded {
		return failure
	}
	for err := failure; err != nil; err = errors.Unwrap(err) {
		w, ok := err.(waiting) //nolint:errorlint // the chain is walked, so that a joined error ends it
		if !ok {
			continue
		}
		reason, after := w.Waiting()
		if left := s.left(obj); left > 0 && (after <= 0 || after > left) {
			return &limitedWait{error: failure, reason: reason, after: left}
		}
		return failure
	}
	return failure
}
