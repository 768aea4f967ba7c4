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

// restTime is the time between the moment at which the operator is quiet and the passes of restCheck. It is above a
// second, so that an operator that writes the time of each pass is found.
const restTime = 2 * time.Second

// maxDueWork is how often work may become due in restTime in one phase. After that many times, restCheck only lets restTime pass.
const maxDueWork = 3

// restCheck checks, in one phase, that the operator rests.
type restCheck struct {
	driver *driver
	ignore func(*unstructured.Unstructured) // the scenario's
	notes  *restNotes
	probes probes
	due    int // how often in the phase work became due before the passes of the check
}

// restNotes are findings of the checks that do not end the run. Only the run without faults reports them, once for all phases.
type restNotes struct {
	noOps   []string // writes of passes that had nothing to do
	refused []result.RefusedCreate
}

// passRestTime lets time pass before the passes of the check. It returns false if work became due in this time, such as
// a scheduled task: then the operator is not quiet yet.
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

// run runs one more pass of every known object, though nothing has changed. The run fails if such a pass changes something. If a fault was
// injected, or work became due before the passes, run has checked nothing and returns false.
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
				continue // the other objects have their passes too
			}
			w.Failures.Add(failure.Finding{Kind: kinds.DoesNotRest, Err: c.probes.explain(c.writesAgain)})
			return true
		}
	}
	return true
}

// add adds what the check of one phase has found, and skips what the check of an earlier phase has found already.
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

// writesAgain runs more passes after the check. It reports whether they send one of the requests again, and change something by it. Then
// the operator does not miss an event: it would write for ever. The run has failed already, and these passes leave no trace in it.
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
