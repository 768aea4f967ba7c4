package reconcile

import (
	"fmt"
	"time"
)

// Waiter is an error that says that nothing is wrong, and that the step has to be tried again:
// after the delay, or when an event brings a pass if the delay is zero. Any package may have
// such errors; [Wait] makes one.
type Waiter interface {
	error
	// Waiting gives the reason of a condition, in CamelCase, and the delay.
	Waiting() (reason string, after time.Duration)
}

// Wait says that the step waits for something, for a reason in CamelCase. It is tried again
// after the delay; zero means that an event will tell. The message must not change while
// nothing else does (no times, no counters): it is written to the status.
func Wait(reason string, after time.Duration, format string, args ...any) error {
	return &waitError{reason: reason, after: after, message: fmt.Sprintf(format, args...)}
}

type waitError struct {
	reason, message string
	after           time.Duration
}

func (e *waitError) Error() string                                 { return e.message }
func (e *waitError) Waiting() (reason string, after time.Duration) { return e.reason, e.after }
