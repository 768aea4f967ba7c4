package run

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// script does the scenario's actions one after another, and waits after each until the operator is quiet. The run's lock guards it.
type script struct {
	scenario *Scenario
	world    *world.World
	operator *operator.Operator
	actions  *actions
	driver   *driver
	phases   phases
	clock    clock
	lingers  bool // the user waits for one more horizon after each action: see RunPatiently
	twins    bool // what the user creates is also created in another namespace: see RunWithTwins

	unsuccessful []error // see result.Result
}

// newScript returns the script of a run in which nothing has happened yet.
func newScript(s *Scenario, w *world.World, o *operator.Operator) *script {
	made := &script{scenario: s, world: w, operator: o, actions: &actions{all: s.Actions}, clock: clock{moments: result.Moments{}}}
	made.driver = &driver{scenario: s, world: w, operator: o, actions: made.actions, holder: &holder{world: w, operator: o}, user: made}
	made.phases = phases{driver: made.driver, world: w, operator: o, actions: made.actions, judge: judge{scenario: s, world: w, actions: made.actions}}
	o.Actions = made
	if w.References != nil {
		made.clock.without = w.References.Baseline.Moments
	}
	return made
}

// HasNext reports whether the user has an action left, and the next one is not a Wait.
func (s *script) HasNext() bool { return s.actions.hasNext() }

// Begun returns how many actions have begun. The caller holds the lock.
func (s *script) Begun() int { return s.actions.begun }

// revisionsPerAction is larger than the number of writes after an action. Before each action the server's revision is set to a multiple of
// it, so the first objects that the user writes have the same resource versions in each run. Operators may store resource versions, or
// hashes of them.
const revisionsPerAction = 1000

// perform does the whole run. It is called in a synctest bubble.
func (s *script) perform() {
	defer s.operator.End()
	defer func() {
		if p := recover(); p != nil {
			s.world.Failures.Add(failure.Panic("the run", p))
		}
	}()
	s.begin()
	s.linger()
	for action, ok := s.next(); ok; action, ok = s.next() {
		s.do(action)
		s.linger()
	}
	s.checkEnd()
}

// begin creates the scenario's objects, starts the operator and lets it become quiet.
func (s *script) begin() {
	if s.createObjects(); s.world.Failures.First() == nil {
		s.phases.finish("start")
	}
}

// createObjects creates the scenario's objects.
func (s *script) createObjects() {
	for _, obj := range s.scenario.Objects {
		if err := s.checkVersion(obj); err != nil {
			s.world.Failures.Add(fmt.Errorf("the scenario's objects: %w", err))
			return
		}
		if err := createWithStatus(context.Background(), s.world.User, obj); err != nil {
			s.world.Failures.Add(withStatusHint(fmt.Errorf("the scenario's objects: %w", err)))
			return
		}
		if s.twins {
			createTwin(context.Background(), s.world.User, obj)
		}
	}
	s.world.Server.AdmitByWebhooks()
	s.operator.ObserveChanges()
}

// checkVersion returns an error if the version of an object can be converted only by the operator's webhook. The scenario's objects are
// created before a process of the operator runs, so nothing would convert them.
func (s *script) checkVersion(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, s.scenario.Scheme)
	if err != nil || s.world.Server.UnreachableConversion(gvk) == nil {
		return nil // a kind that the scheme does not know is refused when the object is created
	}
	return fmt.Errorf("%s has version %s, which the operator's webhook converts, and no process of it has started yet: give it in version %s, or create it by an action",
		text.Describe(obj), gvk.Version, s.world.Server.Canonical(gvk).Version)
}

// linger calls phases.linger if the user waits after each action in this run. Otherwise it does nothing.
func (s *script) linger() {
	if s.lingers {
		s.phases.linger()
	}
}

// next returns the scenario's next action, and counts it as begun. It returns false if there is none.
func (s *script) next() (Action, bool) {
	s.world.Mu.Lock()
	defer s.world.Mu.Unlock()
	action, ok := s.actions.next()
	if ok {
		s.world.Plan.Spares = action.Spares
	}
	return action, ok
}

// do does one action, and lets the operator become quiet.
func (s *script) do(action Action) {
	if s.world.Failures.First() != nil {
		return
	}
	s.scenario.guard.step()
	operator.VerdictOf(s.operator).BeginAction()
	s.beginAction()
	s.actions.then = action.Then
	s.world.Server.Advance(int64(len(s.phases.ended)) * revisionsPerAction)
	s.act(action)
	if action.DoExternal == nil {
		s.phases.finish(action.Name)
	} else {
		s.phases.finishExternal(action.Name)
	}
}

// act does the user's action. If the operator is down, it starts again.
func (s *script) act(action Action) {
	s.world.Trace.BeginPhase()
	s.world.Trace.Add(trace.Row{What: trace.UserPrefix + action.Name})
	if action.Wait > 0 {
		s.operator.EndDowntime()
		s.driver.wait(s.clock.wait(len(s.phases.ended), action.Wait))
		return
	}
	err := s.carryOutAction(action, false)
	if err != nil && s.operator.IsDown() { // the action may need something that the operator creates first
		s.operator.EndDowntime()
		s.driver.settle()
		err = s.carryOutAction(action, false)
	}
	if s.operator.EndDowntime(); err != nil {
		s.world.Failures.Add(withStatusHint(fmt.Errorf("the action %q: %w", action.Name, err)))
	}
}

// withStatusHint adds a hint to the error if the API server refused a field of the status.
func withStatusHint(err error) error {
	if hint := operator.StatusHint(err); hint != "" {
		return fmt.Errorf("%w\n%s", err, hint)
	}
	return err
}

// actionRemedy says what to do if an action does not return.
const actionRemedy = "the operator does nothing while an action runs; use Wait to let time pass, and Then to check what must be true afterwards"

// carryOutAction does the action. locked is true if the caller holds the lock.
func (s *script) carryOutAction(action Action, locked bool) error {
	user := &userClient{WithWatch: s.world.User, world: s.world, holder: s.driver.holder, twins: s.twins, locked: locked}
	var parts []world.OtherParts
	user.withLock(func() { parts = s.world.Others.Parts() })
	defer user.withLock(func() { s.world.Others.ForgetRemovedParts(parts) })
	return failure.Call("it", actionRemedy, func() error {
		if action.DoExternal != nil {
			return action.DoExternal(s.world.External)
		}
		return action.Do(context.Background(), user)
	})
}

// DoNext does the next action in the middle of a pass, and reports whether the action succeeded. The caller holds the lock.
func (s *script) DoNext() bool {
	name, done := s.doNext()
	if done {
		s.world.Trace.AddBefore(trace.Row{What: trace.UserPrefix + name})
	}
	return done
}

// doNext does the next action, and returns its name and whether the action succeeded. The caller holds the lock.
func (s *script) doNext() (name string, done bool) {
	action := s.actions.all[s.actions.begun]
	s.world.Server.Advance(int64(len(s.phases.ended)+1) * revisionsPerAction)
	if err := s.carryOutAction(action, true); err != nil {
		return "", false // the action may need something that the operator creates first
	}
	s.actions.begun++
	s.actions.then, s.world.Plan.Spares = action.Then, action.Spares
	s.phases.add(result.Phase{Name: action.Name})
	return action.Name, true
}

// doNextUnseen does the next action if a fault asks for it before the cache shows a deletion. It reports whether it did the action.
func (s *script) doNextUnseen() bool {
	s.world.Mu.Lock()
	defer s.world.Mu.Unlock()
	if !s.operator.TakeNextUnseen() || !s.actions.hasNext() {
		return false
	}
	name, done := s.doNext()
	if done {
		s.world.Trace.Add(trace.Row{What: trace.UserPrefix + name})
	}
	return done
}

// beginAction notes that the next action begins now. In a run with faults it first waits until the time at which the action begins without
// faults.
func (s *script) beginAction() {
	index := len(s.phases.ended)
	if early := s.clock.early(index); early > 0 && !s.operator.IsDown() {
		s.driver.wait(early)
	}
	s.clock.begin(index)
}

// checkEnd calls the scenario's Finally. In the run without faults it then checks how the last passes ended. In a run with faults it then
// checks how often each object was written.
func (s *script) checkEnd() {
	failures := &s.world.Failures
	if failures.First() != nil {
		return
	}
	if err := s.scenario.checkFinally(s.world); err != nil {
		failures.Add(asked(fmt.Errorf("what must hold at the end does not: %w", err)))
		return
	}
	if s.world.References == nil {
		s.checkSuccess()
		return
	}
	if err := errors.Join(s.world.Counter.CheckWrites(s.world.References.Writes())...); err != nil {
		failures.Add(err)
	}
}

// checkSuccess checks at the end of a run without faults that the operator succeeds.
func (s *script) checkSuccess() {
	s.unsuccessful = operator.VerdictOf(s.operator).Check(s.scenario.Unready)
	if len(s.unsuccessful) > 0 && !s.world.Failures.LeavesOut(kinds.DoesNotSucceed) {
		s.world.Failures.Add(s.unsuccessful[0])
	}
}
