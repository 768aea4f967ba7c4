package run

import (
	"sync/atomic"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// guarded is what a run shows to its guard, which is outside of its bubble.
type guarded struct {
	steps  atomic.Int64 // the steps that the goroutine has taken that drives the run
	bubble atomic.Pointer[string]
	world  atomic.Pointer[world.World]
}

// begin shows the run to its guard. It is called in the bubble.
func (g *guarded) begin(w *world.World) {
	if g == nil { // the run has no guard
		return
	}
	name := bubble.Name()
	g.bubble.Store(&name)
	g.world.Store(w)
}

// step notes that the run goes on.
func (g *guarded) step() {
	if g != nil {
		g.steps.Add(1)
	}
}

// trace returns what has happened in the run so far. It is empty if the run hangs while it holds its lock.
func (g *guarded) trace() *trace.Trace {
	w := g.world.Load()
	if w == nil || !w.Mu.TryLock() {
		return &trace.Trace{}
	}
	defer w.Mu.Unlock()
	return w.Trace.Snapshot()
}

// hang describes why the run does not go on.
func (g *guarded) hang() (remedy, stacks string) {
	name := "synctest bubble"
	if known := g.bubble.Load(); known != nil {
		name = *known
	}
	return bubble.Hang(name)
}
