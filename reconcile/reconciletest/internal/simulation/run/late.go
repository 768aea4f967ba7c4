package run

import (
	"slices"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// LateStart says after which action the operator starts, in a run that begins without it.
type LateStart struct {
	Actions int  // the number of actions before the operator starts
	Stop    bool // the run ends when the operator is quiet for the first time
}

// RunLate runs the scenario without faults, and starts the operator late.
func (s *Scenario) RunLate(t *testing.T, late LateStart, clock result.Moments) *result.Result {
	return s.runReference(t, func(of *script) {
		of.clock.without = clock
		of.performLate(late)
	})
}

// RunPatiently runs the scenario without faults, and waits for one more horizon after each action. With a fault an action often takes
// longer, and then the operator may get as far before the next action as it gets in this run.
func (s *Scenario) RunPatiently(t *testing.T) *result.Result {
	return s.runReference(t, func(of *script) {
		of.lingers = true
		of.perform()
	})
}

// RunWithTwins runs the scenario without faults. For each namespaced object that exists at the beginning, or that the user creates, it also
// creates an object of the same name in another namespace: a twin. The user neither changes nor deletes the twins. The scenario's own
// checks are not made.
func (s *Scenario) RunWithTwins(t *testing.T) *result.Result {
	unchecked := *s
	unchecked.Finally, unchecked.Always, unchecked.Actions = nil, nil, slices.Clone(s.Actions)
	for i := range unchecked.Actions {
		unchecked.Actions[i].Then = nil
	}
	return unchecked.runReference(t, func(of *script) {
		of.twins = true
		of.perform()
	})
}

// runReference does a run without faults in a synctest bubble of its own. The result has only the fields that say how the run ended, and
// the fields with which other runs are compared.
func (s *Scenario) runReference(t *testing.T, do func(of *script)) *result.Result {
	var r *Run
	ending := bubble.Run(t, func(*testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			return
		}
		r = newRun(s, server, nil, nil)
		do(r.script)
		time.Sleep(time.Minute) // goroutines may end at their next tick
	})
	switch {
	case ending.Hung != nil:
		return &result.Result{Unfinished: ending.Hung.Error()}
	case r == nil:
		return &result.Result{}
	}
	return &result.Result{Phases: r.script.phases.ended, Operations: r.World.Counter.Operations, Rights: r.World.Rights.All(), Unfinished: r.script.driver.unfinished, Err: r.World.Failures.First(), Trace: r.World.Trace}
}

// LeadingActions returns how many of the first actions need nothing that the operator does.
func (s *Scenario) LeadingActions(t *testing.T) (n int) {
	_ = bubble.Run(t, func(*testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			return
		}
		n = newRun(s, server, nil, nil).script.actWithoutOperator(len(s.Actions))
	})
	return n
}

// actWithoutOperator creates the scenario's objects, and does the given number of actions. It stops before an action that lets time pass or
// that changes something outside of the cluster, and at an action that fails. It returns how many actions it did.
func (s *script) actWithoutOperator(actions int) int {
	s.createObjects()
	s.phases.add(result.Phase{Name: "start"})
	for n := range actions {
		s.driver.stopIfDue()
		s.settleCluster()
		next := &s.actions.all[n]
		if next.Do == nil || s.world.Failures.First() != nil {
			return n
		}
		if early := s.clock.early(len(s.phases.ended)); early > 0 {
			time.Sleep(early)
		}
		s.world.Server.Advance(int64(len(s.phases.ended)) * revisionsPerAction)
		if s.carryOutAction(*next, false) != nil {
			return n
		}
		s.actions.begun++
		s.actions.then = next.Then
		s.phases.add(result.Phase{Name: next.Name})
	}
	return actions
}

// settleCluster lets the rest of the cluster work until it has nothing to do.
func (s *script) settleCluster() {
	for range operator.MaxClusterSteps {
		if s.operator.ObserveChanges(); !s.world.StepCluster() {
			return
		}
	}
}

// performLate does a whole run in which the user acts first, and the operator starts later. It is called in a synctest bubble.
func (s *script) performLate(late LateStart) {
	defer s.operator.End()
	defer func() {
		if p := recover(); p != nil {
			s.world.Failures.Add(failure.Panic("the run", p))
		}
	}()
	if s.actWithoutOperator(late.Actions) < late.Actions {
		return
	}
	last := len(s.phases.ended) - 1
	name := s.phases.ended[last].Name
	s.phases.ended = s.phases.ended[:last]
	s.operator.ObserveChanges()
	s.phases.finish(name)
	if late.Stop {
		return
	}
	for action, ok := s.next(); ok && s.world.Failures.First() == nil; action, ok = s.next() {
		s.do(action)
	}
}
