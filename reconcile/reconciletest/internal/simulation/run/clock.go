package run

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// clock knows when the actions of a run begin and end. In a run with faults, they begin and end at the same moments as without faults, or
// later if a fault has delayed the run.
type clock struct {
	without result.Moments // the moments of the run without faults, which this one follows; nil: none
	moments result.Moments // the moments of this run
}

// early returns how long it takes until an action begins in the run without faults. It is not positive if nothing is to be waited for.
func (c *clock) early(action int) time.Duration {
	if c.without == nil {
		return 0
	}
	return time.Until(c.without[action].Begun)
}

// begin notes that an action begins now.
func (c *clock) begin(action int) { c.moments[action] = result.Moment{Begun: time.Now()} }

// wait notes that the user waits in an action, and returns for how long. In the run without faults, that is d. In a run with faults, it is
// the time until the wait ends without faults. It is 0 if a fault has delayed the run beyond that: each schedule has had all its times
// already, and another wait would add one.
func (c *clock) wait(action int, d time.Duration) time.Duration {
	if over := c.without[action].Over; !over.IsZero() {
		d = max(0, time.Until(over))
	}
	c.moments[action] = result.Moment{Begun: c.moments[action].Begun, Over: time.Now().Add(d)}
	return d
}
