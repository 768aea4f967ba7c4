package run

import (
	"sync/atomic"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// guarded is the part of a run that a goroutine outside of the run's synctest bubble reads. That goroutine, the guard, finds out whether
// the run hangs.
type guarded struct {
	steps  atomic.Int64 // the number of steps that the run has taken
	bubble atomic.Pointer[string]
	world  atomic.Pointer[world.World]
}

// begin stores the name of the synctest bubble and the world of the run, for the guard. It is called in the bubble.
func (g *guarded) begin(w *world.World) {
	if g == nil { // the run has no guard
		return
	}
	name := bubble.Name()
	g.bubble.Store(&name)
	g.world.Store(w)
}

// step counts a step, so that the guard sees that the run goes on.
func (g *guarded) step() {
	if g != nil {
		g.steps.Add(1)
	}
}

// trace returns what has happened in the run so far. If the run hangs while it holds its lock, the trace is empty.
func (g *guarded) trace() *trace.Trace {
	w := g.world.Load()
	if w == nil || !w.Mu.TryLock() {
		return &trace.Trace{}
	}
	defer w.Mu.Unlock()
	return w.Trace.Snapshot()
}

// hang returns why the run does not go on, what to do about it, and the stacks of its goroutines.
func (g *guarded) hang() (remedy, stacks string) {
	name := "synctest bubble"
	if known := g.bubble.Load(); known != nil {
		name = *known
	}
	return bubble.Hang(name)
}
