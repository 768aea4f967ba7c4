package simulation

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
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
	case <-r.scenario.deadline.Stop:
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unfinished != "" {
		return
	}
	r.unfinished = "it was at the start"
	if done := r.script.done; done > 0 {
		r.unfinished = fmt.Sprintf("it was at action %d of %d, %q", done, len(r.scenario.Actions), r.scenario.Actions[done-1].Name)
	}
	r.failures = append(r.failures, errStopped)
}

// guarded does a run of the scenario. At the deadline it returns an unfinished result, although the run goes on: nothing can end
// a goroutine that does not end by itself.
func (s *Scenario) guarded(run func() *result) *result {
	ended := make(chan *result, 1)
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
	case <-s.deadline.Abandon:
		return &result{err: errStopped, trace: &trace{}, silenced: map[kinds.Finding]bool{}, unfinished: "a pass does not return; " + blocked()}
	}
}

// What blocked shows.
const (
	maxBlocked = 2  // goroutines
	maxFrames  = 24 // lines of the stack of each: two for each frame
)

// blocked returns the stacks of goroutines in bubbles that keep the virtual clock from moving: they compute, or wait for something
// outside of the bubble, such as the network or a mutex.
func blocked() string {
	stacks := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, _, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, "synctest bubble") || strings.Contains(header, "(durable)") || strings.Contains(header, "[synctest.") {
			continue
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		found = append(found, strings.Join(lines[:min(len(lines), maxFrames)], "\n"))
	}
	if len(found) == 0 {
		return "no goroutine of it computes or waits for something outside of the run"
	}
	return "it hangs here:\n" + strings.Join(found[:min(len(found), maxBlocked)], "\n\n")
}
