package run

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// probes are the passes of a check that the operator rests: one more pass of each object, though nothing has changed.
type probes struct {
	world    *world.World
	operator *operator.Operator
	pass     int           // the last pass before them
	before   world.Version // the version then
}

// begin notes what is before the passes, and requests them.
func (p *probes) begin() {
	p.before = p.world.Version()
	p.operator.SetCause("nothing: the operator is quiet")
	p.operator.Leader.Mgr.EnqueueKnown()
	p.pass = p.operator.Passes.Begun
	p.operator.KeepOutcomes()
}

// calls returns what the passes have sent.
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
