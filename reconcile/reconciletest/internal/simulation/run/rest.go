package run

import (
	"slices"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// restTime is the time between the moment at which the operator is quiet and the passes of restCheck. It is above a
// second, so that an operator that writes the time of each pass is found.
const restTime = 2 * time.Second

// maxDueWork is how often in a phase work may become due in the moments before the passes of restCheck.
const maxDueWork = 3

// restCheck checks, in one phase, that the operator rests.
type restCheck struct {
	*Run
	due    int           // how often in the phase work became due before the passes of the check
	pass   int           // the last pass before the check
	before world.Version // the version then
}

// passRestTime lets time pass before the passes of the check. It returns false if work became due in this time, such as
// a scheduled task: then the operator is not quiet yet.
func (c *restCheck) passRestTime() (quiet bool) {
	before := c.Version()
	at, whose := c.Leader.Mgr.NextDue(nil, 1)
	if whose == nil || time.Until(at) > restTime || c.due == maxDueWork {
		time.Sleep(restTime)
		return true
	}
	if c.wait(restTime); c.Version() == before {
		return true
	}
	c.due++
	return false
}

// run runs one more pass of every known object, though nothing has changed. The run fails if that changes something. It
// returns false if a fault was injected, or work became due before the passes: then it has checked nothing.
func (c *restCheck) run() (undisturbed bool) {
	injected := c.InjectedSoFar()
	if !c.passRestTime() || c.InjectedSoFar() > injected {
		return false
	}
	c.before = c.Version()
	c.SetCause("nothing: the operator is quiet")
	c.Leader.Mgr.EnqueueKnown()
	c.pass = c.Passes.Begun
	c.KeepOutcomes()
	c.SetProbing(true)
	defer c.SetProbing(false)
	for range maxPasses {
		ran := c.Failure() == nil && c.nextPass()
		switch {
		case c.InjectedSoFar() > injected:
			return false
		case !ran:
			c.noteNoOps()
			if c.References == nil {
				c.noteRefusedCreates()
			}
			if err := c.checkHidden(); err != nil {
				c.Fail(err)
			}
			return true
		case c.Version() != c.before:
			if c.NoteSilenced(kinds.DoesNotRest) {
				continue // the other objects have their passes too
			}
			c.Fail(failure.Finding{Kind: kinds.DoesNotRest, Err: c.explain()})
			return true
		}
	}
	return true
}

// noteNoOps notes the writes that a pass sent although it had nothing to do, and that changed nothing. They do not end the
// run. They are reported once, for all phases.
func (c *restCheck) noteNoOps() {
	if c.References != nil {
		return // only the run without faults reports them
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, probe := range c.Log.ProbesSince(c.pass) {
		if !probe.IsWrite() || probe.External != "" || probe.Changed || probe.Err != nil || probe.DryRun || probe.Fault != "" {
			continue
		}
		if name := probe.String(); !slices.Contains(c.noOps, name) {
			c.noOps = append(c.noOps, name)
		}
	}
}
