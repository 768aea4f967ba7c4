package operator

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// batchName is the name of the points at which the operator sends several requests at once.
const batchName = "requests sent at once"

// sendBatch calls do for each of n requests that the operator sends at once. To keep a run deterministic, it sends them one after the
// other: in the order in which the operator gave them, or in reverse order if that fault is planned.
func (p *Process) sendBatch(n int, do func(i int)) {
	reversed := n > 1 && p.operator.reachBatch(p)
	for i := range n {
		if reversed {
			i = n - 1 - i
		}
		do(i)
	}
}

// reachBatch notes that a process sends several requests at once. It reports whether a fault reverses their order.
func (o *Operator) reachBatch(p *Process) bool {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if p.Dead || p.Pass == nil {
		return false
	}
	fault, at := o.world.Plan.Reach(plan.Point{Name: batchName, Batch: true})
	if fault != atBatches {
		return false
	}
	o.world.Plan.NoteInjected(fault, at)
	o.world.Trace.Add(trace.Row{Pass: p.Pass.number, What: "  " + batchName, Fault: fault})
	return true
}
