package run

import (
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// LateStart is how a run begins without an operator.
type LateStart struct {
	Actions int  // how many are done before the operator starts
	Stop    bool // the run ends when the operator is quiet
}

// RunLate runs the scenario without faults, and starts the operator late.
func (s *Scenario) RunLate(t *testing.T, late LateStart, clock result.Moments) *result.Result {
	return s.runReference(t, func(of *script) {
		of.clock = clock
		of.performLate(late)
	})
}

// RunPatiently runs the scenario without faults, and lingers after each action. With a fault an action often takes longer, and
// then the operator may get as far before the next action as it gets in this run.
func (s *Scenario) RunPatiently(t *testing.T) *result.Result {
	return s.runReference(t, func(of *script) {
		of.lingers = true
		of.perform()
	})
}

// runReference does a run without faults in a bubble of its own. It returns only what other runs are compared with, and how the run ended.
func (s *Scenario) runReference(t *testing.T, do func(of *script)) *result.Result {
	var r *Run
	ending := bubble.Run(t, func(*testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			return
		}
		r = newRun(s, server, nil, nil)
		do(r.script)
		time.Sleep(time.Minute) // for goroutines that end at their next tick
	})
	switch {
	case ending.Hung != nil:
		return &result.Result{Unfinished: ending.Hung.Error()}
	case r == nil:
		return &result.Result{}
	}
	return &result.Result{Phases: r.script.phases, Operations: r.Counter.Operations, Rights: r.Rights.All(), Unfinished: r.unfinished, Err: r.Failure(), Trace: r.Trace}
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

// actWithoutOperator creates the scenario's objects, and does the given number of actions. It stops before one that lets
// time pass or changes what is outside of the cluster, and at one that fails. It returns how many it did.
func (s *script) actWithoutOperator(actions int) int {
	s.createObjects()
	s.phases = append(s.phases, result.Phase{Name: "start"})
	for n := range actions {
		s.stopIfDue()
		s.settleCluster()
		next := &s.scenario.Actions[n]
		if next.Do == nil || s.Failure() != nil {
			return n
		}
		if early := time.Until(s.clock[len(s.phases)].Begun); early > 0 {
			time.Sleep(early)
		}
		s.Server.Advance(int64(len(s.phases)) * revisionsPerAction)
		if s.carryOutAction(*next, false) != nil {
			return n
		}
		s.done++
		s.then = next.Then
		s.phases = append(s.phases, result.Phase{Name: next.Name})
	}
	return actions
}

// settleCluster lets the rest of the cluster work until it has nothing to do.
func (s *script) settleCluster() {
	for range operator.MaxClusterSteps {
		if s.ObserveChanges(); !s.StepCluster() {
			return
		}
	}
}

// performLate does the whole run. It is called in a bubble.
func (s *script) performLate(late LateStart) {
	defer s.End()
	defer func() {
		if p := recover(); p != nil {
			s.Fail(failure.Panic("the run", p))
		}
	}()
	if s.actWithoutOperator(late.Actions) < late.Actions {
		return
	}
	last := len(s.phases) - 1
	name := s.phases[last].Name
	s.phases = s.phases[:last]
	s.ObserveChanges()
	s.finishPhase(name)
	if late.Stop {
		return
	}
	for action, ok := s.next(); ok && s.Failure() == nil; action, ok = s.next() {
		s.do(action)
	}
}

// maxLinger is how many delays are followed after a phase.
const maxLinger = 30

// linger lets the operator do what becomes due within another horizon after a phase has ended, in a run that does so. It keeps
// the states to which that leads. After the last action it does nothing.
func (s *script) linger() {
	if !s.lingers || s.Failure() != nil || s.done == len(s.scenario.Actions) {
		return
	}
	ended := &s.phases[len(s.phases)-1]
	end := time.Now().Add(s.scenario.horizon())
	for range maxLinger {
		at, whose := s.Leader.Mgr.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			return
		}
		before := s.Version()
		time.Sleep(time.Until(at) + timerDelay)
		if s.work(0); s.Version() == before {
			continue
		}
		now, err := s.state()
		if err != nil || s.Failure() != nil {
			return
		}
		ended.Later = append(ended.Later, now)
		ended.Operations = s.Counter.Harmful()
	}
}
