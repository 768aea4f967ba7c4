package run

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// clock knows when the actions of a run begin and end. In a run with faults, they begin and end at the same moments as without faults, or
// later if a fault has delayed the run.
type clock struct {
	without result.Moments // the times of the actions without faults, which this run follows; nil: it follows none
	moments result.Moments // the times of the actions in this run
}

// early returns how much later than now the action begins in the run without faults. If this run is late, the result is negative. If this
// run does not follow the times of another one, the result is 0.
func (c *clock) early(action int) time.Duration {
	if c.without == nil {
		return 0
	}
	return time.Until(c.without[action].Begun)
}

// begin notes that an action begins now.
func (c *clock) begin(action int) { c.moments[action] = result.Moment{Begun: time.Now()} }

// wait returns how long the user waits in an action, and notes when the wait ends. In the run without faults it returns d. In a run with
// faults it returns the time until the wait ends without faults. If a fault has delayed the run beyond that time, it returns 0: the
// schedules have had all their times already, and a further wait would add one.
func (c *clock) wait(action int, d time.Duration) time.Duration {
	if over := c.without[action].Over; !over.IsZero() {
		d = max(0, time.Until(over))
	}
	c.moments[action] = result.Moment{Begun: c.moments[action].Begun, Over: time.Now().Add(d)}
	return d
}
