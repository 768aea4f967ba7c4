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

// Limits and delays of a run.
const (
	maxPassTime  = time.Hour        // a pass that takes more virtual time than this counts as endless
	maxFreeze    = 10 * time.Second // if a pass waits for more virtual time than this, the cache catches up
	timerDelay   = time.Millisecond // how late the pass of a delayed request begins, as with real timers
	maxIdleSteps = 10_000           // more steps of the rest of the cluster than this, without a pass between them, count as endless
)

// driver lets the operator of a run work, one transition after another, until it is quiet.
type driver struct {
	scenario *Scenario
	world    *world.World
	operator *operator.Operator
	actions  *actions
	holder   *holder
	user     hastyUser

	unfinished string // where the run was when the deadline ended it; "": the deadline did not end it
}

// hastyUser is a user who may do the next action at once, before the cache shows the deletion of an object.
type hastyUser interface {
	doNextUnseen() bool // does the next action if a fault asks for it now, and reports whether it did
}

// transition is one thing that can happen next. Its function reports whether it happened.
type transition struct {
	name string
	do   func(d *driver, p *progress) bool
}

// transitions returns what can happen, in order of precedence. After each transition the list is tried from the start.
// The operator is quiet when none of them can happen.
func transitions() []transition {
	return []transition{
		// The first process starts here. Later ones replace one that died, as a kubelet restarts a container.
		{"start a process in place of one that died", func(d *driver, _ *progress) bool { return d.operator.ReplaceDeadProcess() }},
		// Without a process only the rest of the cluster works: the simulated controllers, the other writer and the garbage collector. When
		// they have nothing left to do, this transition ends the loop in work, and none of the transitions below happens.
		{"let the cluster work while the operator is down", func(d *driver, p *progress) bool { return d.operator.IsDown() && (d.world.StepCluster() || p.stop()) }},
		// Events come before passes, so that a pass sees everything that happened before it, unless a fault delays its cache.
		{"deliver an event", func(d *driver, _ *progress) bool { return d.deliver() }},
		// While a kind in the cache is frozen, each known object is reconciled once or twice more, with the old cache.
		{"request passes while the cache is behind", func(d *driver, _ *progress) bool { return d.requestPasses() }},
		// One pass runs at a time, to its end. If a fault changes the leader, the pass is suspended, and another process runs its passes.
		{"run a pass that is due", func(d *driver, p *progress) bool { return d.nextPass() && p.countPass() }},
		// The user acts before a broken watch is repaired, and before the rest of the cluster works.
		{"do the user's next action before the cache shows a deletion", func(d *driver, _ *progress) bool { return d.user.doNextUnseen() }},
		// The operator has nothing to do. The simulated controllers, the other writer and the garbage collector work now.
		{"let the cluster work", func(d *driver, p *progress) bool { return d.world.StepCluster() && p.countClusterStep() }},
		// Nothing else can happen, so the cache catches up, one kind at a time.
		{"end a freeze of the cache", func(d *driver, _ *progress) bool { return d.operator.Leader.Mgr.Cache().Kinds.Thaw() }},
		// This comes late, so that the old cache of the new process differs from the present as much as possible.
		{"replace the process by one that sees the past", func(d *driver, _ *progress) bool { return d.operator.TravelToThePast() }},
		// The clock moves only when nothing else can happen.
		{"wait for what is due next", func(d *driver, p *progress) bool { return d.waitForNextDue(p) }},
		// A finalizer of another controller holds an object that the user deletes. That controller removes it after the operator has done
		// everything.
		{"end a deletion that another controller holds", func(d *driver, _ *progress) bool { return d.holder.releaseWhenQuiet() }},
	}
}

// progress is how far the operator has got since the method work was called.
type progress struct {
	horizon      time.Duration // how long after quietSince the run waits for delayed passes
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

// settle lets the operator work until it is quiet: nothing can happen now, and no delayed pass becomes due within the scenario's horizon.
// Objects whose delayed passes have changed nothing too often are not waited for.
func (d *driver) settle() { d.work(d.scenario.horizon()) }

// work is like settle with another horizon. If the horizon is 0, it does not wait for delayed passes.
func (d *driver) work(horizon time.Duration) {
	p := &progress{horizon: horizon, version: d.world.Version(), injected: d.world.InjectedSoFar(), leader: d.operator.Leader, quietSince: time.Now(), attempts: fakemanager.Attempts{}}
	all, begun, pass := transitions(), time.Now(), d.operator.Passes.Begun
	for !p.stopped && d.world.Failures.First() == nil {
		d.Observe()
		d.stopIfDue()
		if injected := d.world.InjectedSoFar(); injected != p.injected || d.operator.Leader != p.leader { // time to recover from the fault, or to start
			p.injected, p.leader, p.quietSince, p.attempts = injected, d.operator.Leader, time.Now(), fakemanager.Attempts{}
		}
		if now := d.world.Version(); now != p.version {
			p.version, p.quietSince, p.attempts = now, time.Now(), fakemanager.Attempts{}
			if err := d.scenario.checkAlways(d.world); err != nil {
				d.world.Failures.Add(err)
			}
		}
		if p.passes >= maxPasses {
			d.world.Failures.Abort(notQuietError(d.world, d.operator, d.scenario.horizon(), begun, pass))
			return
		}
		if p.clusterSteps >= maxIdleSteps {
			d.world.Failures.Add(fmt.Errorf("the simulated controllers and the External do not become quiet: they still changed something after %d steps", maxIdleSteps))
			return
		}
		if !slices.ContainsFunc(all, func(t transition) bool { return t.do(d, p) }) {
			return
		}
	}
}

// Observe waits until all goroutines of the run block, and then records what they have changed.
func (d *driver) Observe() {
	d.scenario.guard.step()
	d.operator.Observe()
}

// deliver delivers one event to the process.
func (d *driver) deliver() bool {
	change, err := d.operator.Leader.Mgr.Deliver(func(c *memoryserver.Change) { d.operator.SetCause(world.NameOfChange(c)) })
	if change == nil {
		return false
	}
	if err != nil {
		d.world.Failures.Add(fmt.Errorf("event of %s: %w", world.NameOfChange(change), err))
	}
	return true
}

// requestPasses helps a frozen kind to thaw. The cache does not show the changes of such a kind until every known object has had some
// passes. If another pass of every known object is needed for that, requestPasses enqueues a request for each of them, and returns true.
// Otherwise it returns false. Package simulation explains these terms.
func (d *driver) requestPasses() bool {
	kind := d.operator.Leader.Mgr.NextFrozen()
	if kind == "" {
		return false
	}
	d.operator.SetCause("something else, while the cache of " + kind + " is behind")
	d.operator.Leader.Mgr.EnqueueKnown()
	return true
}

// nextPass runs one pass, if a request is ready.
func (d *driver) nextPass() bool {
	next := d.operator.Leader.Mgr.Take()
	if next == nil {
		return false
	}
	d.finishPass(next)
	next.End()
	return true
}

// waitForNextDue lets time pass until a delayed pass becomes due. It returns false if none does within the horizon. Objects whose delayed
// passes have changed nothing too often are not waited for.
func (d *driver) waitForNextDue(p *progress) bool {
	at, whose := d.operator.Leader.Mgr.NextDue(p.attempts, d.scenario.enoughAttempts())
	if whose == nil || at.After(p.quietSince.Add(p.horizon)) {
		return false
	}
	time.Sleep(time.Until(at) + timerDelay)
	p.attempts.Count(whose)
	return true
}

// stopIfDue ends the run if the deadline has come.
func (d *driver) stopIfDue() {
	select {
	case <-d.scenario.Deadline.Stop:
	default:
		return
	}
	if d.unfinished != "" {
		return
	}
	d.world.Mu.Lock()
	d.unfinished = d.actions.place()
	d.world.Mu.Unlock()
	d.world.Failures.Abort(errStopped)
}
