package finalizers

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
