package simulation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/internal/simulation/failure"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// noteConventions inserts a finding for each convention that the run without faults breaks.
func (e *explorer) noteConventions() {
	of := e.baseline
	if len(of.NoOps) > 0 {
		e.noteConvention(fmt.Errorf("a pass that has nothing to do sends %s, which changes nothing: compare first, with the defaults that the API server sets, and write only what differs",
			strings.Join(of.NoOps, ", ")), of.Trace.LastPassWith(of.NoOps[0]))
	}
	if len(of.Left) > 0 {
		e.noteConvention(errors.New("a goroutine is left when the process has ended: "+strings.Join(of.Left, "; ")+
			"\nIt is started once, so the goroutines do not add up while the process runs. End it when the context of Start or of the Runnable ends"), of.Trace.SinceFault())
	}
}

// noteConvention inserts a finding, unless findings of this kind are left out.
func (e *explorer) noteConvention(err error, shows string) {
	if e.isSilent(kinds.BreaksConvention) {
		e.baseline.Silenced[kinds.BreaksConvention] = true
		return
	}
	e.found.insert(Failure{Kind: kinds.BreaksConvention, Err: err, Cause: failure.CauseOf(err), shown: true, Trace: shows, trace: e.baseline.Trace})
}
