package run

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// These are the times, in real time, of the goroutine that watches a run from outside of its synctest bubble: the guard.
const (
	guardEvery  = 10 * time.Millisecond // how often the guard looks at the run
	maxGuardGap = time.Second           // if more time passes between two looks, the program was paused, and only this much counts
	defaultHung = 30 * time.Second      // see Deadline.Hung
)

// Guarded does a run with a copy of the scenario. If the deadline comes or the run hangs, Guarded returns a result, and the run is left
// behind: nothing can end a goroutine that does not end by itself.
func (s *Scenario) Guarded(run func(s *Scenario) *result.Result) *result.Result {
	own := *s
	own.guard = &guarded{}
	select {
	case <-s.Deadline.Abandon: // a run that begins now could not end before the test does
		return notEnded(&own, "it had not begun")
	default:
	}
	ended := make(chan *result.Result, 1)
	go func() {
		defer close(ended)
		ended <- run(&own)
	}()
	ticker := time.NewTicker(guardEvery)
	defer ticker.Stop()
	look := look{at: time.Now()}
	for {
		select {
		case r, ok := <-ended:
			if !ok { // the race detector has failed the test, so the run has no result
				runtime.Goexit()
			}
			return r
		case <-s.Deadline.Abandon:
			_, stacks := own.guard.hang()
			return notEnded(&own, "a pass does not return; it hangs here:\n"+stacks)
		case now := <-ticker.C:
			if look.still(now, own.guard.steps.Load()) >= cmp.Or(s.Deadline.Hung, defaultHung) {
				return hung(&own, look.idle)
			}
		}
	}
}

// look is what the guard has seen of a run.
type look struct {
	at    time.Time
	steps int64
	idle  time.Duration // the time since the last step
}

// still returns how long the run has taken no step. now is the time of this look, and steps is the number of steps so far.
func (l *look) still(now time.Time, steps int64) time.Duration {
	if l.idle += min(now.Sub(l.at), maxGuardGap); steps != l.steps {
		l.idle = 0
	}
	l.at, l.steps = now, steps
	return l.idle
}

// notEnded returns the result of a run that the deadline has ended.
func notEnded(s *Scenario, where string) *result.Result {
	return &result.Result{Err: errStopped, Trace: s.guard.trace(), Silenced: map[kinds.Finding]bool{}, Unfinished: where}
}

// hung returns the result of a run that hangs.
func hung(s *Scenario, idle time.Duration) *result.Result {
	remedy, stacks := s.guard.hang()
	err := fmt.Errorf("the run hangs: the virtual clock has stood still for %s of real time, and nothing has happened\nThis is why: %s\n%s", idle.Round(time.Second), remedy, stacks)
	return &result.Result{
		Err: failure.Finding{Kind: kinds.DoesNotSurvive, Cause: "the run hangs", Err: err}, Hung: true,
		Trace: s.guard.trace(), Silenced: map[kinds.Finding]bool{},
	}
}
