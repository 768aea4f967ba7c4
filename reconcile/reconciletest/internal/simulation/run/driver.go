package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Limits and delays.
const (
	maxPasses    = 300              // an operator that needs more passes in one call of work does not become quiet
	maxPassTime  = time.Hour        // a pass that takes more virtual time counts as endless
	maxFreeze    = 10 * time.Second // if a pass waits for more virtual time, the cache catches up
	timerDelay   = time.Millisecond // how late the pass of a delayed request begins, as with real timers
	maxIdleSteps = 10_000           // more such steps in a row while the operator has nothing to do count as endless
)

// transition is one thing that can happen next. Its function reports whether it happened.
type transition struct {
	name string
	do   func(r *Run, p *progress) bool
}

// transitions returns what can happen, in order of precedence. After each transition the list is tried from the start.
// The operator is quiet when none of them can happen.
func transitions() []transition {
	return []transition{
		// The first process starts here. Later ones replace one that died, as a kubelet restarts a container.
		{"start a process in place of one that died", func(r *Run, _ *progress) bool { return r.ReplaceDeadProcess() }},
		// Without a process only the rest of the cluster works, and work ends when that has nothing left to do. None of the
		// transitions below can happen.
		{"let the cluster work while the operator is down", func(r *Run, p *progress) bool { return r.IsDown() && (r.StepCluster() || p.stop()) }},
		// Events come before passes, so that a pass sees everything that happened before it, unless a fault delays its cache.
		{"deliver an event", func(r *Run, _ *progress) bool { return r.deliver() }},
		// While a kind in the cache is frozen, each known object is reconciled once or twice more, with the old cache.
		{"request passes while the cache is behind", func(r *Run, _ *progress) bool { return r.requestPasses() }},
		// One pass runs at a time, to its end, unless a leader change suspends it: then another process runs its own.
		{"run a pass that is due", func(r *Run, p *progress) bool { return r.nextPass() && p.countPass() }},
		// The user is faster than a broken watch, and than the rest of the cluster.
		{"do the user's next action before the cache shows a deletion", func(r *Run, _ *progress) bool { return r.script.doNextUnseen() }},
		// The operator has nothing to do. The simulated controllers, the other writer and the garbage collector work now.
		{"let the cluster work", func(r *Run, p *progress) bool { return r.StepCluster() && p.countClusterStep() }},
		// Nothing else can happen, so the cache catches up, one kind at a time.
		{"end a freeze of the cache", func(r *Run, _ *progress) bool { return r.Leader.Mgr.Cache().Thaw() }},
		// This comes late, so that the past differs from the present as much as possible.
		{"replace the process by one that sees the past", func(r *Run, _ *progress) bool { return r.TravelToThePast() }},
		// The clock moves only when nothing else can happen.
		{"wait for what is due next", func(r *Run, p *progress) bool { return r.waitForNextDue(p) }},
		// Another controller is slower than everything that the operator does.
		{"end a deletion that another controller holds", func(r *Run, _ *progress) bool { return r.holder.releaseWhenQuiet() }},
	}
}

// progress is how far the operator has got since work began.
type progress struct {
	horizon      time.Duration // how long after quietSince delays are followed
	passes       int
	clusterSteps int           // the steps of the rest of the cluster since the last pass
	version      world.Version // the version after the last change
	injected     int           // how many faults have been injected
	leader       *operator.Process
	quietSince   time.Time // the time of the last change or fault, or of the last start of a process
	attempts     fakemanager.Attempts
	stopped      bool // the operator is down, and the rest of the cluster has nothing to do
}

func (p *progress) countPass() bool { p.passes++; p.clusterSteps = 0; return true }

func (p *progress) countClusterStep() bool { p.clusterSteps++; return true }

func (p *progress) stop() bool { p.stopped = true; return true }

// settle lets the operator work until it is quiet: nothing can happen now, and no delayed request becomes due within the
// scenario's horizon, except those that have used up their attempts.
func (r *Run) settle() { r.work(r.scenario.horizon()) }

// work is settle with another horizon. With 0 no delays are followed.
func (r *Run) work(horizon time.Duration) {
	p := &progress{horizon: horizon, version: r.Version(), injected: r.InjectedSoFar(), leader: r.Leader, quietSince: time.Now(), attempts: fakemanager.Attempts{}}
	all, begun, pass := transitions(), time.Now(), r.Passes.Begun
	for !p.stopped && r.Failure() == nil {
		r.Observe()
		r.stopIfDue()
		if injected := r.InjectedSoFar(); injected != p.injected || r.Leader != p.leader { // time to recover from the fault, or to start
			p.injected, p.leader, p.quietSince, p.attempts = injected, r.Leader, time.Now(), fakemanager.Attempts{}
		}
		if now := r.Version(); now != p.version {
			p.version, p.quietSince, p.attempts = now, time.Now(), fakemanager.Attempts{}
			r.checkAlways()
		}
		if p.passes >= maxPasses {
			r.Abort(r.notQuietError(begun, pass))
			return
		}
		if p.clusterSteps >= maxIdleSteps {
			r.Fail(fmt.Errorf("the simulated controllers and the External do not become quiet: they still changed something after %d steps", maxIdleSteps))
			return
		}
		if !slices.ContainsFunc(all, func(t transition) bool { return t.do(r, p) }) {
			return
		}
	}
}

// Observe waits until all goroutines of the run block, and observes what they changed.
func (r *Run) Observe() {
	r.scenario.guard.step()
	r.Operator.Observe()
}

// deliver delivers one event to the process.
func (r *Run) deliver() bool {
	change, err := r.Leader.Mgr.Deliver(func(c *memoryserver.Change) { r.SetCause(world.NameOfChange(c)) })
	if change == nil {
		return false
	}
	if err != nil {
		r.Fail(fmt.Errorf("event of %s: %w", world.NameOfChange(change), err))
	}
	return true
}

// requestPasses enqueues a request for every known object if a kind in the cache is frozen and needs another pass of each.
func (r *Run) requestPasses() bool {
	kind := r.Leader.Mgr.NextFrozen()
	if kind == "" {
		return false
	}
	r.SetCause("something else, while the cache of " + kind + " is behind")
	r.Leader.Mgr.EnqueueKnown()
	return true
}

// nextPass runs one pass, if a request is ready.
func (r *Run) nextPass() bool {
	next := r.Leader.Mgr.Take()
	if next == nil {
		return false
	}
	r.finishPass(next)
	next.End()
	return true
}
