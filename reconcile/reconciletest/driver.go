package reconciletest

import (
	"fmt"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Bounds of one action. An operator that needs more does not come to rest.
const (
	maxPasses = 300
	maxPass   = time.Hour        // of virtual time, for a pass that waits
	maxStale  = 10 * time.Second // for which a cache stays behind while a pass waits
	restart   = 2 * time.Second  // until a process that died has started again
	maxSteps  = 100              // of all else in the cluster meanwhile
)

// settle lets the operator work until it is quiet: no event is left, and nothing is due within the
// horizon, or what is due changes nothing.
func (r *run) settle() { r.work(r.scenario.horizon()) }

// work is settle with a horizon; zero follows no delays.
func (r *run) work(horizon time.Duration) {
	passes := 0
	quietSince, tried := time.Now(), tries{}
	moment := r.moment()
	for r.failure() == nil {
		r.progress()
		if now := r.moment(); now != moment {
			moment, quietSince, tried = now, time.Now(), tries{}
			r.always()
		}
		if passes >= maxPasses {
			r.fail(r.restless())
			return
		}
		switch {
		case r.revive():
		case r.isAway():
			if !r.others() {
				return
			}
		case r.deliver():
		case r.ask():
		case r.next():
			passes++
		case r.others():
		case r.process.cache.thaw():
		case r.travel():
		case r.timer(quietSince.Add(horizon), tried):
		default:
			return
		}
	}
}

// progress lets everything that runs come to a stop, and takes note of what it did.
func (r *run) progress() {
	synctest.Wait()
	r.note()
}

// revive starts a new process where there is none.
func (r *run) revive() bool {
	r.mu.Lock()
	old := r.process
	if old != nil && (!old.dead || r.away) {
		r.mu.Unlock()
		return false
	}
	if old != nil {
		r.clean = false
	}
	r.mu.Unlock()
	if old != nil {
		time.Sleep(restart)
		for range maxSteps {
			if !r.others() {
				break
			}
		}
	}
	r.begin()
	return true
}

// isAway reports whether there is no process until the user's next action.
func (r *run) isAway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

// begin starts a process, which leads from now on.
func (r *run) begin() {
	r.mu.Lock()
	r.processes++
	p := newProcess(r, r.processes)
	if r.past != nil {
		p.cache.returnTo(r.past, r.changes)
		r.past, r.returned = nil, true
	}
	r.process = p
	r.mu.Unlock()
	if p.number > 1 {
		r.trace.add(row{what: fmt.Sprintf("process %d starts", p.number)})
	}
	r.setCause("start")
	if err := p.start(); err != nil {
		r.fail(err)
	}
}

// deliver brings one event to the process.
func (r *run) deliver() bool {
	kind, change := r.process.cache.next()
	if change == nil {
		return false
	}
	r.setCause(changeName(change))
	for _, h := range r.process.cache.handlers(kind) {
		if err := h.tell(change.Old, change.New); err != nil {
			r.fail(fmt.Errorf("event of %s: %w", changeName(change), err))
		}
	}
	for _, c := range r.process.controllers {
		if c.every == nil {
			continue
		}
		c.enqueueAll(r.context())
		if change.New == nil && change.GVK == *c.every {
			c.enqueue(change.Key)
		}
	}
	return true
}

// ask asks for passes while a kind is frozen.
func (r *run) ask() bool {
	kind := r.process.ask()
	if kind == "" {
		return false
	}
	r.setCause("something else, while the cache of " + kind + " is behind")
	for _, c := range r.process.controllers {
		c.enqueueKnown()
	}
	return true
}

// next runs one pass, if one is due.
func (r *run) next() bool {
	for _, c := range r.process.controllers {
		if i := c.queue.take(); i != nil {
			p := r.process
			p.cache.passBegins()
			r.reconcile(c, i)
			p.passEnded(over{c.name, i.request})
			return true
		}
	}
	return false
}

// others lets everything else in the cluster take a step.
func (r *run) others() bool {
	before := r.server.Revision()
	for _, act := range r.scenario.others() {
		if err := guarded("an actor", func() error { return act(r.context(), r.user) }); err != nil {
			r.fail(fmt.Errorf("what else runs in the cluster: %w", err))
		}
	}
	r.releaseFinalizers()
	r.server.CollectGarbage()
	return r.server.Revision() != before
}

// timer lets time pass until something is due that was not tried often enough.
func (r *run) timer(until time.Time, t tries) bool {
	var first time.Time
	var whose *controller
	for _, c := range r.process.controllers {
		due := c.queue.due(t[c], r.scenario.rounds())
		if !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first, whose = due, c
		}
	}
	if whose == nil || first.After(until) {
		return false
	}
	time.Sleep(time.Until(first))
	if t[whose] == nil {
		t[whose] = map[ctrl.Request]int{}
	}
	for _, request := range whose.queue.ready() {
		t[whose][request]++
	}
	return true
}

// tries counts delayed passes since something changed.
type tries map[*controller]map[ctrl.Request]int
