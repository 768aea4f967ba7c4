package simulation

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// Limits and delays.
const (
	maxPasses       = 300              // an operator that needs more passes in one call of work does not become quiet
	maxPassTime     = time.Hour        // a pass that takes more virtual time counts as endless
	maxFreeze       = 10 * time.Second // if a pass waits for more virtual time, the cache catches up
	restartTime     = 2 * time.Second  // the time from the death of a process to the start of the next one
	timerDelay      = time.Millisecond // how late the pass of a delayed request begins, as with real timers
	maxClusterSteps = 100              // the largest number of steps of the rest of the cluster between two processes
	maxIdleSteps    = 10_000           // more such steps in a row while the operator has nothing to do count as endless
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
		{"start a process in place of one that died", func(r *Run, _ *progress) bool { return r.replaceDeadProcess() }},
		// Without a process only the rest of the cluster works, and work ends when that has nothing left to do. None of the
		// transitions below can happen.
		{"let the cluster work while the operator is down", func(r *Run, p *progress) bool { return r.isDown() && (r.stepCluster() || p.stop()) }},
		// Events come before passes, so that a pass sees everything that happened before it, unless a fault delays its cache.
		{"deliver an event", func(r *Run, _ *progress) bool { return r.deliver() }},
		// While a kind in the cache is frozen, each known object is reconciled once or twice more, with the old cache.
		{"request passes while the cache is behind", func(r *Run, _ *progress) bool { return r.requestPasses() }},
		// One pass runs at a time, to its end, unless a leader change suspends it: then another process runs its own.
		{"run a pass that is due", func(r *Run, p *progress) bool { return r.nextPass() && p.countPass() }},
		// The operator has nothing to do. The simulated controllers, the other writer and the garbage collector work now.
		{"let the cluster work", func(r *Run, p *progress) bool { return r.stepCluster() && p.countClusterStep() }},
		// Nothing else can happen, so the cache catches up, one kind at a time.
		{"end a freeze of the cache", func(r *Run, _ *progress) bool { return r.processes.leader.manager.Cache().Thaw() }},
		// This comes late, so that the past differs from the present as much as possible.
		{"replace the process by one that sees the past", func(r *Run, _ *progress) bool { return r.travelToThePast() }},
		// The clock moves only when nothing else can happen.
		{"wait for what is due next", func(r *Run, p *progress) bool { return r.waitForNextDue(p) }},
		// Another controller is slower than everything that the operator does.
		{"end a deletion that another controller holds", func(r *Run, _ *progress) bool { return r.releaseWhenQuiet() }},
	}
}

// progress is how far the operator has got since work began.
type progress struct {
	horizon      time.Duration // how long after quietSince delays are followed
	passes       int
	clusterSteps int       // the steps of the rest of the cluster since the last pass
	version      version   // the version after the last change
	injected     int       // how many faults have been injected
	quietSince   time.Time // the time of the last change or fault
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
	p := &progress{horizon: horizon, version: r.version(), injected: r.injectedSoFar(), quietSince: time.Now(), attempts: fakemanager.Attempts{}}
	all := transitions()
	for !p.stopped && r.failure() == nil {
		r.observe()
		r.stopIfDue()
		if injected := r.injectedSoFar(); injected != p.injected { // time to recover from the fault
			p.injected, p.quietSince, p.attempts = injected, time.Now(), fakemanager.Attempts{}
		}
		if now := r.version(); now != p.version {
			p.version, p.quietSince, p.attempts = now, time.Now(), fakemanager.Attempts{}
			r.checkAlways()
		}
		if p.passes >= maxPasses {
			r.abort(r.notQuietError())
			return
		}
		if p.clusterSteps >= maxIdleSteps {
			r.fail(fmt.Errorf("the simulated controllers and the External do not become quiet: they still changed something after %d steps", maxIdleSteps))
			return
		}
		if !slices.ContainsFunc(all, func(t transition) bool { return t.do(r, p) }) {
			return
		}
	}
}

// observe waits until all goroutines of the run block, and observes what they changed.
func (r *Run) observe() {
	synctest.Wait()
	r.observeChanges()
}

// deliver delivers one event to the process.
func (r *Run) deliver() bool {
	change, err := r.processes.leader.manager.Deliver(func(c *memoryserver.Change) { r.setCause(nameOfChange(c)) })
	if change == nil {
		return false
	}
	if err != nil {
		r.fail(fmt.Errorf("event of %s: %w", nameOfChange(change), err))
	}
	return true
}

// requestPasses enqueues a request for every known object if a kind in the cache is frozen and needs another pass of each.
func (r *Run) requestPasses() bool {
	kind := r.processes.leader.manager.NextFrozen()
	if kind == "" {
		return false
	}
	r.setCause("something else, while the cache of " + kind + " is behind")
	r.processes.leader.manager.EnqueueKnown()
	return true
}

// nextPass runs one pass, if a request is ready.
func (r *Run) nextPass() bool {
	next := r.processes.leader.manager.Take()
	if next == nil {
		return false
	}
	r.finishPass(next)
	next.End()
	return true
}

// stepCluster lets the rest of the cluster take one step: what is outside of it, the simulated controllers, the other writer
// and the garbage collector. It reports whether something changed.
func (r *Run) stepCluster() bool {
	before := r.server.Revision()
	r.mu.Lock()
	parts := r.partsOfOthers()
	r.mu.Unlock()
	moved := r.stepExternal()
	for _, reconcile := range r.scenario.Controllers {
		if err := recoverPanic("it", func() error { return reconcile(r.context(), r.user) }); err != nil {
			r.fail(fmt.Errorf("a simulated controller: %w", err))
		}
	}
	r.mu.Lock()
	r.forgetRemovedParts(parts)
	r.releaseFinalizers()
	r.mu.Unlock()
	r.server.CollectGarbage()
	return moved || r.server.Revision() != before
}

// waitForNextDue lets time pass until a delayed request becomes due. It reports false if none does within the horizon.
// Requests that have used up their attempts do not count.
func (r *Run) waitForNextDue(p *progress) bool {
	at, whose := r.processes.leader.manager.NextDue(p.attempts, r.scenario.enoughAttempts())
	if whose == nil || at.After(p.quietSince.Add(p.horizon)) {
		return false
	}
	time.Sleep(time.Until(at) + timerDelay)
	p.attempts.Count(whose)
	return true
}
