package simulation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// script is how far the run is in the scenario's actions. The run's lock guards it.
type script struct {
	done   int     // how many actions have begun
	phases []phase // one for the start, and one for each action that has ended

	moments moments
}

// hasNext reports whether the user has an action left, and the next one is not a Wait.
func (s *script) hasNext(actions []Action) bool {
	return s.done < len(actions) && actions[s.done].Wait == 0
}

// revisionsPerAction is more than the number of writes after an action. The server's revision is set to a multiple of it
// before each action, so what a user writes first has the same resource version in each run. Operators may store
// resource versions, or hashes of them.
const revisionsPerAction = 1000

// runActions does the whole run. It is called in a bubble.
func (r *Run) runActions() {
	defer r.end()
	defer func() {
		if p := recover(); p != nil {
			r.fail(panicError("the run", p))
		}
	}()
	r.begin()
	r.linger()
	for action, ok := r.nextAction(); ok; action, ok = r.nextAction() {
		r.do(action)
		r.linger()
	}
	r.checkEnd()
}

// begin creates the scenario's objects, starts the operator and lets it become quiet.
func (r *Run) begin() {
	if r.createObjects(); r.failure() == nil {
		r.finishPhase("start")
	}
}

// createObjects creates the scenario's objects.
func (r *Run) createObjects() {
	for _, obj := range r.scenario.Objects {
		if err := createWithStatus(r.context(), r.user, obj); err != nil {
			r.fail(fmt.Errorf("the scenario's objects: %w", err))
			return
		}
	}
	r.observeChanges()
}

// nextAction returns the scenario's next action, and counts it as begun. It returns false if there is none.
func (r *Run) nextAction() (Action, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.script.done == len(r.scenario.Actions) {
		return Action{}, false
	}
	r.script.done++
	return r.scenario.Actions[r.script.done-1], true
}

// do does one action, and lets the operator become quiet.
func (r *Run) do(action Action) {
	if r.failure() != nil {
		return
	}
	r.beginAction()
	r.server.Advance(int64(len(r.script.phases)) * revisionsPerAction)
	r.act(action)
	if action.DoExternal == nil {
		r.finishPhase(action.Name)
		return
	}
	// An external action has no event. A pass of checkRest would be the first to see it, and rightly change something.
	if r.settle(); r.failure() != nil {
		return
	}
	quiet, err := r.checkPhase(action.Name)
	if err != nil {
		r.fail(err)
	}
	if r.failure() != nil {
		return
	}
	r.script.phases = append(r.script.phases, quiet)
}

// act does the user's action. It ends a downtime of the operator.
func (r *Run) act(action Action) {
	r.trace.beginPhase()
	r.trace.add(row{what: userPrefix + action.Name})
	if action.Wait > 0 {
		r.endDowntime()
		r.waitUntilOver(action.Wait)
		return
	}
	err := r.carryOutAction(action, false)
	if err != nil && r.isDown() { // the action may need something that the operator creates first
		r.endDowntime()
		r.settle()
		err = r.carryOutAction(action, false)
	}
	if r.endDowntime(); err != nil {
		r.fail(fmt.Errorf("the action %q: %w", action.Name, err))
	}
}

// carryOutAction does the action. locked is true if the caller holds the lock.
func (r *Run) carryOutAction(action Action, locked bool) error {
	user := &userClient{WithWatch: r.user, run: r, locked: locked}
	var parts []otherParts
	user.withLock(func() { parts = r.partsOfOthers() })
	defer user.withLock(func() { r.forgetRemovedParts(parts) })
	return recoverPanic("it", func() error {
		if action.DoExternal != nil {
			return action.DoExternal(r.external)
		}
		return action.Do(r.context(), user)
	})
}

// doNextAction does the next action in the middle of a pass, and reports whether that succeeded. The caller holds the
// lock.
func (r *Run) doNextAction() bool {
	action := r.scenario.Actions[r.script.done]
	r.server.Advance(int64(len(r.script.phases)+1) * revisionsPerAction)
	if err := r.carryOutAction(action, true); err != nil {
		return false // the action may need something that the operator creates first
	}
	r.script.done++
	r.script.phases = append(r.script.phases, phase{name: action.Name})
	r.trace.addBefore(row{what: userPrefix + action.Name})
	return true
}

// checkAlways calls the scenario's Always.
func (r *Run) checkAlways() {
	if r.scenario.Always == nil {
		return
	}
	if err := recoverPanic("Always", func() error { return r.scenario.Always(r) }); err != nil {
		r.fail(fmt.Errorf("what must always hold does not: %w", err))
	}
}

// checkEnd calls the scenario's Finally. Without faults it also checks how the last passes ended; with faults, how often
// each object was written.
func (r *Run) checkEnd() {
	if r.failure() != nil {
		return
	}
	if r.scenario.Finally != nil {
		if err := recoverPanic("Finally", func() error { return r.scenario.Finally(r) }); err != nil {
			r.fail(fmt.Errorf("what must hold at the end does not: %w", err))
			return
		}
	}
	var err error
	if r.references == nil {
		err = r.checkOutcomes()
	} else {
		err = errors.Join(r.checkWrites()...)
	}
	if err != nil {
		r.fail(err)
	}
}

// wait lets time pass. The operator does what becomes due in this time.
func (r *Run) wait(d time.Duration) {
	end := time.Now().Add(d)
	step := max(time.Second, d/maxSleeps)
	for r.failure() == nil && !r.isDown() { // a process that is down does nothing until the user's next action
		at, whose := r.processes.leader.manager.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			break
		}
		r.sleepUntil(at.Add(timerDelay), step)
		r.work(0)
	}
	r.sleepUntil(end, step)
}

// maxSleeps is how many times a wait is interrupted at most, beside the delays that become due.
const maxSleeps = 100

// sleepUntil lets time pass. It interrupts its sleep after each step, since the operator may act outside of its passes.
func (r *Run) sleepUntil(end time.Time, step time.Duration) {
	for r.failure() == nil && time.Now().Before(end) {
		time.Sleep(min(step, time.Until(end)))
		if !r.isDown() {
			r.work(0)
		}
	}
}

// createWithStatus creates a copy of the object, with its status.
func createWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	made := obj.DeepCopyObject().(client.Object)
	if err := c.Create(ctx, made); err != nil {
		return err
	}
	if !state.HasStatus(obj) || reflect.DeepEqual(state.StatusOf(obj), state.StatusOf(made)) {
		return nil
	}
	with := obj.DeepCopyObject().(client.Object)
	with.SetUID(made.GetUID())
	with.SetResourceVersion(made.GetResourceVersion())
	return c.Status().Update(ctx, with)
}

// UpdateWithStatus updates the object, and then its status if the API server ignored the status in the first request.
func UpdateWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	with := obj.DeepCopyObject().(client.Object)
	if err := c.Update(ctx, obj); err != nil {
		return err
	}
	if reflect.DeepEqual(state.StatusOf(with), state.StatusOf(obj)) {
		return nil
	}
	with.SetResourceVersion(obj.GetResourceVersion())
	return c.Status().Update(ctx, with)
}

// Describe returns an object's kind, namespace and name. Without a kind in the object, it takes the name of its Go type.
func Describe(obj client.Object) string {
	kind := reflect.TypeOf(obj).Elem().Name()
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		kind = gvk.Kind
	}
	return kind + " " + nameOf(client.ObjectKeyFromObject(obj))
}

func nameOf(key client.ObjectKey) string { return state.NameOf(key) }
