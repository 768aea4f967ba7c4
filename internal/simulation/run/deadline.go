package run

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/opblocks/opblocks/internal/simulation/bubble"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/result"
	"github.com/opblocks/opblocks/internal/simulation/trace"
)

// Deadline ends runs shortly before the test program is ended. A nil channel never ends any.
type Deadline struct {
	Stop    <-chan struct{} // when it is closed, runs end at their next step
	Abandon <-chan struct{} // when it is closed, runs that have not ended are left behind: one of their passes does not return
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

// Guarded does a run of the scenario. At the deadline it returns an unfinished result, although the run goes on: nothing can end
// a goroutine that does not end by itself.
func (s *Scenario) Guarded(run func() *result.Result) *result.Result {
	ended := make(chan *result.Result, 1)
	go func() {
		defer close(ended)
		ended <- run()
	}()
	select {
	case r, ok := <-ended:
		if !ok { // the race detector has failed the test in the bubble
			runtime.Goexit()
		}
		return r
	case <-s.Deadline.Abandon:
		return &result.Result{Err: errStopped, Trace: &trace.Trace{}, Silenced: map[kinds.Finding]bool{}, Unfinished: "a pass does not return; " + bubble.Blocked()}
	}
}
