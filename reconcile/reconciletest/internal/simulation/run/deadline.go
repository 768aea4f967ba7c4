package run

import (
	"errors"
	"time"
)

// Deadline ends runs shortly before the test program is ended, and those that hang. A nil channel never ends any.
type Deadline struct {
	Stop    <-chan struct{} // when it is closed, runs end at their next step
	Abandon <-chan struct{} // when it is closed, runs that have not ended are left behind: one of their passes does not return
	Hung    time.Duration   // a run that takes no step for so long, in real time, hangs and is left behind; 0: 30 seconds
}

// errStopped is the error of a run that has not come to its end.
var errStopped = errors.New("the run was stopped")
