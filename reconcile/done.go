package reconcile

import (
	"fmt"
	"time"
)

// Success is success in the step's own words: a reason in CamelCase and a message, which must not
// change while nothing else does. They are shown in the step's condition, and in Ready when all
// steps succeed; of several such steps the last one's. The step is run again after the delay, which
// becomes up to a tenth longer so that objects part; zero means on an event.
func Success(reason string, again time.Duration, format string, args ...any) error {
	return &doneError{reason: reason, message: fmt.Sprintf(format, args...), again: again}
}

type doneError struct {
	reason, message string
	again           time.Duration
}

func (e *doneError) Error() string { return e.message }
