package simulation

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// Bounds of one action. An operator that needs more does not become quiet.
const (
	maxPasses       = 300
	maxPassTime         = time.Hour        // of virtual time, for a pass that waits
	maxFreeze        = 10 * time.Second // for which a cache stays behind while a pass waits
	restartTime     = 2 * time.Second  // until a process that died has started again
	maxClusterSteps = 100              // of everything else in the cluster meanwhile
)

// transition is one thing that can happen next. It reports whether it happened.
type transition struct {
	name string
	do   func(r *Run, p *progress) bool
}

// transitions returns what can happen, in order. After each step that happens the list begins anew. The operator is quiet
// when no step can happen.
func transitions() []transition {
	return []transition{
		// The operator is restarted, as by a kubelet. The first process starts here too.
		{"start a process in place of one that died", func(r *Run, _ *progress) bool { return r.replaceDeadProcess() }},
		// Without a process only the rest of the cluster works. Nothing below can happen.
		{"let the cluster work while the operator is down", func(r *Run, p *progress) bool { return r.isDown() && (r.stepCluster() || p.stop()) }},
		// Events come before passes, so that a pass sees all that happened before, unless its cache is behind by a fault.
		{"deliver an event", func(r *Run, _ *progress) bool { return r.deliver() }},
		// While a kind in the cache is frozen, everything known has another pass or two, which then sees the past.
		{"request passes while the cache is behind", func(r *Run, _ *progress) bool { return r.requestPasses() }},
		// One pass runs at a time, to its end.
		{"run a pass that is due", func(r *Run, p *progress) bool { return r.nextPass() && p.countPass() }},
		// The operator has done what it can. Garbage collection and simulated controllers answer.
		{"let the cluster work", func(r *Run, _ *progress) bool { return r.stepCluster() }},
		// Nothing else happens any more, so the cache catches up. One kind at a time.
		{"end a freeze of the cache", func(r *Run, _ *progress) bool { return r.processes.leader.manager.Cache().Thaw() }},
		// By now the past differs from the present as much as it can.
		{"replace the process by one that sees the past", func(r *Run, _ *progress) bool { return r.travelToThePast() }},
		// The clock moves only when nothing else is left.
		{"wait for what is due next", func(r *Run, p *progress) bool { return r.waitForNextDue(p) }},
	}
}

// progress is how far the operator has got since the last action.
type progress struct {
	horizon    time.Duration // how far into the future delays are followed
	passes     int
	version     version    // of the last change
	quietSince time.Time // when that was
	attempts   fakemanager.Attempts
	stopped    bool // the operator is down, and the cluster is quiet
}

func (p *progress) countPass() bool { p.passes++; return true }

func (p *progress) stop() bool { p.stopped = true; return true }

// settle lets the operator work until it is quiet: no event is left, and nothing is due within the horizon, or what
// is due changes nothing.
func (r *Run) settle() { r.work(r.scenario.horizon()) }

// work is settle with another horizon. Zero follows no delays.
func (r *Run) work(horizon time.Duration) {
	p := &progress{horizon: horizon, version: r.version(), quietSince: time.Now(), attempts: fakemanager.Attempts{}}
	for steps := transitions(); !p.stopped && r.failure() == nil; {
		r.observe()
		if now := r.version(); now != p.version {
			p.version, p.quietSince, p.attempts = now, time.Now(), fakemanager.Attempts{}
			r.checkAlways()
		}
		if p.passes >= maxPasses {
			r.fail(r.notQuietError())
			return
		}
		if !slices.ContainsFunc(steps, func(t transition) bool { return t.do(r, p) }) {
			return
		}
	}
}

// observe waits until everything that runs has come to a stop, and observes what it changed.
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

// requestPasses requests a pass of everything known while a kind in the cache is frozen.
func (r *Run) requestPasses() bool {
	kind := r.processes.leader.manager.NextFrozen()
	if kind == "" {
		return false
	}
	r.setCause("something else, while the cache of " + kind + " is behind")
	r.processes.leader.manager.EnqueueKnown()
	return true
}

// nextPass runs one pass, if one is due.
func (r *Run) nextPass() bool {
	next := r.processes.leader.manager.Take()
	if next == nil {
		return false
	}
	r.finishPass(next)
	next.End()
	return true
}

// stepCluster lets everything else in the cluster take one step: the simulated controllers, the other writer and the
// garbage collector. It reports whether something changed.
func (r *Run) stepCluster() bool {
	before := r.server.Revision()
	for _, reconcile := range r.scenario.Controllers {
		if err := recoverPanic("it", func() error { return reconcile(r.context(), r.user) }); err != nil {
			r.fail(fmt.Errorf("a simulated controller: %w", err))
		}
	}
	r.releaseFinalizers()
	r.server.CollectGarbage()
	return r.server.Revision() != before
}

// waitForNextDue lets time pass until a delayed request is due that was not attempted often enough.
func (r *Run) waitForNextDue(p *progress) bool {
	at, whose := r.processes.leader.manager.NextDue(p.attempts, r.scenario.enoughAttempts())
	if whose == nil || at.After(p.quietSince.Add(p.horizon)) {
		return false
	}
	time.Sleep(time.Until(at))
	p.attempts.Count(whose)
	return true
}
