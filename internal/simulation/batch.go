package simulation

import "github.com/opblocks/opblocks/internal/simulation/kinds"

// batchName is the name of the points at which an operator sends several requests at once.
const batchName = "requests sent at once"

// sendBatch does what an operator sends at once: one after the other, since a run is deterministic, in the order in which the
// operator gave it, or in the reverse order if that is planned.
func (p *Process) sendBatch(n int, do func(i int)) {
	reversed := n > 1 && p.run.reachBatch(p)
	for i := range n {
		if reversed {
			i = n - 1 - i
		}
		do(i)
	}
}

// reachBatch notes that a process sends several requests at once. It reports whether their order is to be reversed.
func (r *Run) reachBatch(p *Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.dead || p.pass == nil {
		return false
	}
	fault, at := r.plan.reach(point{name: batchName, batch: true})
	if fault != kinds.Reversed {
		return false
	}
	r.plan.noteInjected(fault, at)
	r.trace.add(row{pass: p.pass.number, what: "  " + batchName, fault: fault})
	return true
}
