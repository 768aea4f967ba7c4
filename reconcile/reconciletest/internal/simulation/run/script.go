package run

import (
	"context"
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// script does the scenario's actions, and checks the state after each. The run's lock guards it.
type script struct {
	*Run
	clock   result.Moments // the moments of the run without faults, which this one follows; nil: none
	lingers bool           // the run lingers after each action; see linger
	twins   bool           // what the user creates is also created in another namespace; see RunWithTwins

	done    int              // how many actions have begun
	then    func(*Run) error // the Then of the last action; may be nil
	phases  []result.Phase   // one for the start, and one for each action that has ended
	moments result.Moments
}

// HasNext reports whether the user has an action left, and the next one is not a Wait.
func (s *script) HasNext() bool {
	return s.done < len(s.scenario.Actions) && !s.isWait(s.done)
}

// Begun returns how many actions have begun. The caller holds the lock.
func (s *script) Begun() int { return s.done }

// isWait reports whether the action of that index exists, and the user only waits in it.
func (s *script) isWait(action int) bool {
	return action < len(s.scenario.Actions) && s.scenario.Actions[action].Wait > 0
}

// revisionsPerAction is more than the number of writes after an action. The server's revision is set to a multiple of it
// before each action, so what a user writes first has the same resource version in each run. Operators may store
// resource versions, or hashes of them.
const revisionsPerAction = 1000

// perform does the whole run. It is called in a bubble.
func (s *script) perform() {
	defer s.End()
	defer func() {
		if p := recover(); p != nil {
			s.Fail(failure.Panic("the run", p))
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
	if s.createObjects(); s.Failure() == nil {
		s.finishPhase("start")
	}
}

// createObjects creates the scenario's objects.
func (s *script) createObjects() {
	for _, obj := range s.scenario.Objects {
		if err := createWithStatus(context.Background(), s.User, obj); err != nil {
			s.Fail(withStatusHint(fmt.Errorf("the scenario's objects: %w", err)))
			return
		}
		if s.twins {
			s.createTwin(context.Background(), s.User, obj)
		}
	}
	s.ObserveChanges()
}

// next returns the scenario's next action, and counts it as begun. It returns false if there is none.
func (s *script) next() (Action, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.done == len(s.scenario.Actions) {
		return Action{}, false
	}
	s.done++
	return s.scenario.Actions[s.done-1], true
}

// do does one action, and lets the operator become quiet.
func (s *script) do(action Action) {
	if s.Failure() != nil {
		return
	}
	s.scenario.guard.step()
	operator.VerdictOf(s.Operator).BeginAction()
	s.beginAction()
	s.then = action.Then
	s.Server.Advance(int64(len(s.phases)) * revisionsPerAction)
	s.act(action)
	if action.DoExternal == nil {
		s.finishPhase(action.Name)
		return
	}
	// An external action has no event. A pass of restCheck would be the first to see it, and rightly change something.
	if s.settle(); s.Failure() != nil {
		return
	}
	quiet, err := s.checkPhase(action.Name)
	if err != nil {
		s.Fail(err)
	}
	if s.Failure() != nil {
		return
	}
	s.phases = append(s.phases, quiet)
}

// act does the user's action. It ends a downtime of the operator.
func (s *script) act(action Action) {
	s.Trace.BeginPhase()
	s.Trace.Add(trace.Row{What: trace.UserPrefix + action.Name})
	if action.Wait > 0 {
		s.EndDowntime()
		s.waitUntilOver(action.Wait)
		return
	}
	err := s.carryOutAction(action, false)
	if err != nil && s.IsDown() { // the action may need something that the operator creates first
		s.EndDowntime()
		s.settle()
		err = s.carryOutAction(action, false)
	}
	if s.EndDowntime(); err != nil {
		s.Fail(withStatusHint(fmt.Errorf("the action %q: %w", action.Name, err)))
	}
}

// withStatusHint adds what to do if a field of the status was refused.
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
	user := &userClient{WithWatch: s.User, run: s.Run, locked: locked}
	var parts []world.OtherParts
	user.withLock(func() { parts = s.Others.Parts() })
	defer user.withLock(func() { s.Others.ForgetRemovedParts(parts) })
	return failure.Call("it", actionRemedy, func() error {
		if action.DoExternal != nil {
			return action.DoExternal(s.External)
		}
		return action.Do(context.Background(), user)
	})
}

// DoNext does the next action in the middle of a pass, and reports whether that succeeded. The caller holds the
// lock.
func (s *script) DoNext() bool {
	name, done := s.doNext()
	if done {
		s.Trace.AddBefore(trace.Row{What: trace.UserPrefix + name})
	}
	return done
}

// doNext does the next action, and returns its name and whether it succeeded. The caller holds the lock.
func (s *script) doNext() (name string, done bool) {
	action := s.scenario.Actions[s.done]
	s.Server.Advance(int64(len(s.phases)+1) * revisionsPerAction)
	if err := s.carryOutAction(action, true); err != nil {
		return "", false // the action may need something that the operator creates first
	}
	s.done++
	s.then = action.Then
	s.phases = append(s.phases, result.Phase{Name: action.Name})
	return action.Name, true
}

// doNextUnseen does the next action if that is to happen before the cache shows a deletion. It reports whether it did.
func (s *script) doNextUnseen() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.TakeNextUnseen() || !s.HasNext() {
		return false
	}
	name, done := s.doNext()
	if done {
		s.Trace.Add(trace.Row{What: trace.UserPrefix + name})
	}
	return done
}

// beginAction notes that the next action begins now. In a run with faults it first lets time pass until the action begins without
// them.
func (s *script) beginAction() {
	if s.clock != nil && !s.IsDown() {
		if early := time.Until(s.clock[len(s.phases)].Begun); early > 0 {
			s.wait(early)
		}
	}
	s.moments[len(s.phases)] = result.Moment{Begun: time.Now()}
}

// waitUntilOver lets time pass for a wait of the user: until its end without faults, or for d in the run without faults. If a fault
// has made the run later than that, no time passes: a schedule has had all its times already, and another wait would add one.
func (s *script) waitUntilOver(d time.Duration) {
	index := len(s.phases)
	if s.clock != nil && !s.clock[index].Over.IsZero() {
		d = max(0, time.Until(s.clock[index].Over))
	}
	begun := s.moments[index].Begun
	s.moments[index] = result.Moment{Begun: begun, Over: time.Now().Add(d)}
	s.wait(d)
}
