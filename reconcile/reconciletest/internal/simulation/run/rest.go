package run

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// restTime is the time between the moment at which the operator becomes quiet and the passes of restCheck. It is longer than a second. So
// if an operator writes the time of each pass, the time differs, and the check finds the write.
const restTime = 2 * time.Second

// maxDueWork is how often a phase waits for work that becomes due during restTime. After that, restCheck lets restTime pass and goes on.
const maxDueWork = 3

// restCheck checks, at the end of one phase, that one more pass of every object changes nothing.
type restCheck struct {
	driver *driver
	ignore func(*unstructured.Unstructured) // removes from an object what the scenario ignores
	notes  *restNotes
	probes probes
	due    int // how often in this phase work became due before the check
}

// restNotes are findings of restCheck that do not end the run. Only the run without faults reports them, once for all phases.
type restNotes struct {
	noOps   []string // writes of passes that had nothing to do
	refused []result.RefusedCreate
}

// passRestTime lets restTime pass before the check. It returns false if work became due in this time and changed something, such as a
// scheduled task: then the operator is not quiet yet.
func (c *restCheck) passRestTime() (quiet bool) {
	before := c.driver.world.Version()
	at, whose := c.driver.operator.Leader.Mgr.NextDue(nil, 1)
	if whose == nil || time.Until(at) > restTime || c.due == maxDueWork {
		time.Sleep(restTime)
		return true
	}
	if c.driver.wait(restTime); c.driver.world.Version() == before {
		return true
	}
	c.due++
	return false
}

// run runs one more pass of every object, though nothing has changed. The run fails if such a pass changes something. It returns false, and
// has checked nothing, if a fault was injected, or if work became due before the passes.
func (c *restCheck) run() (undisturbed bool) {
	w := c.driver.world
	injected := w.InjectedSoFar()
	if !c.passRestTime() || w.InjectedSoFar() > injected {
		return false
	}
	c.probes.begin()
	w.SetProbing(true)
	defer w.SetProbing(false)
	for range maxPasses {
		ran := w.Failures.First() == nil && c.driver.nextPass()
		switch {
		case w.InjectedSoFar() > injected:
			return false
		case !ran:
			if w.References == nil {
				c.notes.add(c.probes.noOps(), c.probes.refusedCreates(c.ignore))
			}
			if err := c.probes.checkHidden(); err != nil {
				w.Failures.Add(err)
			}
			return true
		case w.Version() != c.probes.before:
			if w.Failures.LeavesOut(kinds.DoesNotRest) {
				continue // the passes over the other objects run too
			}
			w.Failures.Add(failure.Finding{Kind: kinds.DoesNotRest, Err: c.probes.explain(c.writesAgain)})
			return true
		}
	}
	return true
}

// add adds what the check of one phase has found. It skips what the check of an earlier phase has found already.
func (n *restNotes) add(noOps []string, refused []result.RefusedCreate) {
	for _, name := range noOps {
		if !slices.Contains(n.noOps, name) {
			n.noOps = append(n.noOps, name)
		}
	}
	for _, create := range refused {
		if !slices.ContainsFunc(n.refused, func(r result.RefusedCreate) bool { return r.Request == create.Request }) {
			n.refused = append(n.refused, create)
		}
	}
}

// writesAgain runs more passes after the check. It reports whether they send one of the requests again and change something by it. If they
// do, the operator has not missed an event: it would write for ever. The run has failed already, so these passes are removed from the
// trace.
func (c *restCheck) writesAgain(wrote []string) bool {
	w, o := c.driver.world, c.driver.operator
	failures, rows, before := w.Failures.Length(), w.Trace.Length(), len(w.Log.All())
	c.driver.work(0)
	time.Sleep(restTime)
	o.SetCause("nothing: the operator is quiet")
	o.Leader.Mgr.EnqueueKnown()
	for range maxPasses {
		if w.Failures.First() != nil || !c.driver.nextPass() {
			break
		}
	}
	w.Failures.Cut(failures)
	w.Trace.Cut(rows)
	return slices.ContainsFunc(w.Log.All()[before:], func(request request.Request) bool {
		return request.Changed && slices.Contains(wrote, request.String())
	})
}
