package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// noteConventions inserts a finding for each convention that the run without faults breaks.
func (e *explorer) noteConventions() {
	of := e.baseline
	if len(of.NoOps) > 0 {
		e.noteConvention(fmt.Errorf("a pass that has nothing to do sends %s, which changes nothing: compare first, with the defaults that the API server sets, and write only what differs",
			strings.Join(of.NoOps, ", ")), of.Trace.LastPassWith(of.NoOps[0]))
	}
	e.noteGoroutines(of.Left)
}

// noteGoroutines inserts a finding for the goroutines that are left after the run without faults. If one place in the code has started
// several, more are added while the process runs, and the finding is that the operator does not survive. If each place has started one, the
// finding is a broken convention. The exploration goes on.
func (e *explorer) noteGoroutines(left []bubble.Goroutines) {
	many := slices.ContainsFunc(left, func(g bubble.Goroutines) bool { return g.Count > 1 })
	switch {
	case len(left) == 0:
	case many:
		e.note(Failure{Kind: kinds.DoesNotSurvive, Err: bubble.LeftError(left)})
	default:
		e.noteConvention(fmt.Errorf("%w\nIt is started once, so the goroutines do not add up while the process runs. End it when the context of Start or of the Runnable ends",
			bubble.LeftError(left)), e.baseline.Trace.SinceFault())
	}
}

// noteConvention inserts the finding that the operator breaks a convention. shows is the part of the trace that shows it.
func (e *explorer) noteConvention(err error, shows string) {
	e.note(Failure{Kind: kinds.BreaksConvention, Err: err, Trace: shows, trace: e.baseline.Trace})
}

// note inserts a finding about the run without faults, after which the exploration goes on. If the scenario leaves out findings of its
// kind, the finding is only noted as left out. If the finding has no trace, it gets the trace of this run.
func (e *explorer) note(f Failure) {
	if e.isSilent(f.Kind) {
		e.baseline.Silenced[f.Kind] = true
		return
	}
	if f.trace == nil {
		f.Trace, f.trace = e.baseline.Trace.SinceFault(), e.baseline.Trace
	}
	f.Cause, f.shown = cmp.Or(f.Cause, failure.CauseOf(f.Err)), true
	e.found.insert(f)
}
