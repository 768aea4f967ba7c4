package run

import (
	"errors"
	"time"
)

// Deadline ends runs shortly before the test program would be ended, and runs that hang. A nil channel ends no run.
type Deadline struct {
	Stop    <-chan struct{} // when it is closed, runs end at their next step
	Abandon <-chan struct{} // when it is closed, runs that have not ended are left behind, since one of their passes does not return
	Hung    time.Duration   // a run that takes no step for so long, in real time, hangs and is left behind; 0: 30 seconds
}

// errStopped is the error of a run that the deadline has stopped.
var errStopped = errors.New("the run was stopped")
