package run

import (
	"errors"
	"fmt"
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

// stopIfDue ends the run if the deadline has come.
func (r *Run) stopIfDue() {
	select {
	case <-r.scenario.Deadline.Stop:
	default:
		return
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.unfinished != "" {
		return
	}
	r.unfinished = "it was at the start"
	if done := r.script.done; done > 0 {
		r.unfinished = fmt.Sprintf("it was at action %d of %d, %q", done, len(r.scenario.Actions), r.scenario.Actions[done-1].Name)
	}
	r.Failures = append(r.Failures, errStopped)
}
