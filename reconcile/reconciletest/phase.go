package reconciletest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// phase is what there was when all was quiet after an action.
type phase struct {
	name     string
	state    state
	rollouts map[madeKey]int
	deleted  map[madeKey]int
}

// versionsPerAction is more than an action costs. What a user writes first has the same version in
// each run, since operators may keep these, or hashes of them.
const versionsPerAction = 1000

// play is the whole run. It is called in a bubble.
func (r *run) play() {
	defer r.end()
	defer func() {
		if p := recover(); p != nil {
			r.fail(panicError("the run", p))
		}
	}()
	r.open()
	for action, ok := r.nextAction(); ok; action, ok = r.nextAction() {
		r.do(action)
	}
	r.finally()
}

// open makes what is there at first, and starts the operator.
func (r *run) open() {
	for _, obj := range r.scenario.Objects {
		if err := r.put(obj); err != nil {
			r.fail(fmt.Errorf("the scenario's objects: %w", err))
			return
		}
	}
	r.note()
	r.finishPhase("start")
}

// put creates an object as it is, with its status.
func (r *run) put(obj client.Object) error {
	made := obj.DeepCopyObject().(client.Object)
	if err := r.user.Create(r.context(), made); err != nil {
		return err
	}
	if !hasStatus(obj) || !dropsStatus(obj, made) {
		return nil
	}
	with := obj.DeepCopyObject().(client.Object)
	with.SetUID(made.GetUID())
	with.SetResourceVersion(made.GetResourceVersion())
	return r.user.Status().Update(r.context(), with)
}

// do lets the user do something, and the operator come to rest.
func (r *run) do(action Action) {
	if r.failure() != nil {
		return
	}
	r.server.Advance(int64(len(r.phases)) * versionsPerAction)
	r.act(action)
	if action.outside == nil {
		r.finishPhase(action.Name)
		return
	}
	// Of that nothing tells the operator: one more pass would be the first to see it.
	if r.settle(); r.failure() != nil {
		return
	}
	s, err := r.checkState(action.Name)
	if err != nil {
		r.fail(err)
		return
	}
	r.phases = append(r.phases, r.phase(action.Name, s))
}

func (r *run) phase(name string, s state) phase {
	return phase{name, s, maps.Clone(r.rollouts), maps.Clone(r.deleted)}
}

// act lets the user do something.
func (r *run) act(action Action) {
	r.trace.phase()
	r.trace.add(row{what: "user: " + action.Name})
	if action.wait > 0 {
		r.back()
		r.wait(action.wait)
		return
	}
	err := r.carryOutAction(action)
	if err != nil && r.isAway() { // perhaps for lack of something that the operator makes
		r.back()
		r.settle()
		err = r.carryOutAction(action)
	}
	if r.back(); err != nil {
		r.fail(fmt.Errorf("the action %q: %w", action.Name, err))
	}
}

func (r *run) carryOutAction(action Action) error {
	return guarded("it", func() error {
		if action.outside != nil {
			return action.outside(r.outside)
		}
		return action.Do(r.context(), r.user)
	})
}

// nextAction gives the next of the scenario's actions.
func (r *run) nextAction() (Action, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.acted == len(r.scenario.Actions) {
		return Action{}, false
	}
	r.acted++
	return r.scenario.Actions[r.acted-1], true
}

// hasNext reports whether the user does something after the present action that needs no waiting. The caller
// holds the lock.
func (r *run) hasNext() bool {
	return r.acted < len(r.scenario.Actions) && r.scenario.Actions[r.acted].wait == 0
}

// hurry does the next action now, and reports whether it could be done. The caller holds the lock.
func (r *run) hurry() bool {
	action := r.scenario.Actions[r.acted]
	r.server.Advance(int64(len(r.phases)+1) * versionsPerAction)
	if err := r.carryOutAction(action); err != nil {
		return false // perhaps for lack of something that the operator makes
	}
	r.acted++
	r.phases = append(r.phases, phase{name: action.Name})
	r.trace.addBefore(row{what: "user: " + action.Name})
	return true
}

// finishPhase lets the operator come to rest, and checks how it is then. A fault that strikes in the very check
// of the rest has the operator come to rest anew.
func (r *run) finishPhase(name string) {
	for {
		if r.settle(); r.failure() != nil {
			return
		}
		if r.isAway() { // nobody has worked on it
			r.phases = append(r.phases, phase{name: name})
			return
		}
		s, err := r.checkState(name)
		if err != nil {
			r.fail(err)
			return
		}
		at := r.phase(name, s)
		if r.checkRest() {
			r.phases = append(r.phases, at)
			return
		}
	}
}

// checkState gives what there is, which must be the same as without faults.
func (r *run) checkState(name string) (state, error) {
	if err := r.checkTouched(); err != nil {
		return nil, err
	}
	s, err := r.snapshot()
	if err != nil || r.baseline == nil {
		return s, err
	}
	want := r.baseline.phases[len(r.phases)]
	if lines := difference(want.state, s); len(lines) > 0 {
		return nil, fmt.Errorf("after %q it is not as it is without faults:\n  %s", name, strings.Join(lines, "\n  "))
	}
	return s, r.checkDeeds(&want)
}

// back lets the process start again that was away.
func (r *run) back() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = false
}

// always checks what must hold at every moment.
func (r *run) always() {
	if r.scenario.Always == nil {
		return
	}
	if err := guarded("Always", func() error { return r.scenario.Always(r.world()) }); err != nil {
		r.fail(fmt.Errorf("what must always hold does not: %w", err))
	}
}

// finally checks what must hold at the end.
func (r *run) finally() {
	if r.failure() != nil {
		return
	}
	if r.scenario.Finally != nil {
		if err := guarded("Finally", func() error { return r.scenario.Finally(r.world()) }); err != nil {
			r.fail(fmt.Errorf("what must hold at the end does not: %w", err))
			return
		}
	}
	if r.baseline == nil {
		if err := r.checkErrors(); err != nil {
			r.fail(err)
		}
		return
	}
	var errs []error
	for key, n := range r.writes {
		if without := r.baseline.writes[key]; n > 2*without+slack {
			errs = append(errs, fmt.Errorf("%s %s was written %d times, without faults %d", key.kind.Kind, nameOf(key.name), n, without))
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.fail(err)
	}
}

// wait lets time pass, in steps between which the operator does what is due.
func (r *run) wait(d time.Duration) {
	end := time.Now().Add(d)
	for r.failure() == nil && !r.isAway() { // a process that is away does nothing until the user's next action
		var first time.Time
		for _, c := range r.process.controllers {
			if due := c.queue.due(nil, 1); !due.IsZero() && (first.IsZero() || due.Before(first)) {
				first = due
			}
		}
		if first.IsZero() || first.After(end) {
			break
		}
		r.sleep(first)
		r.work(0)
	}
	r.sleep(end)
}

// sleep lets time pass, in which the operator may act outside of its passes.
func (r *run) sleep(until time.Time) {
	step := max(time.Second, time.Until(until)/mostSteps)
	for r.failure() == nil && time.Now().Before(until) {
		time.Sleep(min(step, time.Until(until)))
		if !r.isAway() {
			r.work(0)
		}
	}
}

// mostSteps is in how many steps time passes, at most.
const mostSteps = 100
