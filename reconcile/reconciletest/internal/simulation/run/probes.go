package run

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// probes are the passes of a check: after the operator has become quiet, one more pass of each object must change nothing.
type probes struct {
	world    *world.World
	operator *operator.Operator
	pass     int           // the number of the last pass before the check
	before   world.Version // the version of the world before the check
}

// begin notes what exists before the check, and enqueues a request for each object.
func (p *probes) begin() {
	p.before = p.world.Version()
	p.operator.SetCause("nothing: the operator is quiet")
	p.operator.Leader.Mgr.EnqueueKnown()
	p.pass = p.operator.Passes.Begun
	p.operator.KeepOutcomes()
}

// calls returns the requests that the passes of the check have sent.
func (p *probes) calls() []*request.Call { return p.world.Log.ProbesSince(p.pass) }

// noOps returns the writes that a pass sent although it had nothing to do, and that changed nothing.
func (p *probes) noOps() (names []string) {
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	for _, probe := range p.calls() {
		if probe.IsWrite() && probe.External == "" && !probe.Changed && probe.Err == nil && !probe.DryRun && probe.Fault == "" {
			names = append(names, probe.String())
		}
	}
	return names
}
