package simulation

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// references are the runs without faults, with which the others are compared. One of them alone is an opinion: it may be
// wrong itself. So the operator is also started late, after the first actions. A run with faults must be as one of them.
type references struct {
	baseline *result
	late     []*phase       // by the index of the phase; nil if there is none
	lateRuns []*result      // each of them starts the operator later than the one before
	random   []state.Places // by the index of the phase: places at which two runs without faults differ
}

// lateStart is how a run begins without an operator.
type lateStart struct {
	actions int  // that are done before the operator starts
	stop    bool // the run ends when the operator is quiet
}

// newReferences does the other runs without faults.
func (s *Scenario) newReferences(t *testing.T, baseline *result) *references {
	refs := &references{baseline: baseline, late: make([]*phase, len(baseline.phases)), random: make([]state.Places, len(baseline.phases))}
	leading := s.leadingActions(t)
	refs.lateRuns = make([]*result, leading)
	again := &result{} // it stays so if the race detector ends the run
	var runs sync.WaitGroup
	runs.Go(func() { again = s.run(t, nil, nil) })
	for i := range leading {
		refs.lateRuns[i] = &result{}
		runs.Go(func() {
			refs.lateRuns[i] = s.runLate(t, lateStart{actions: i + 1, stop: i+1 < leading}, baseline.moments)
		})
	}
	runs.Wait()
	for i := range refs.late {
		if i < len(again.phases) {
			refs.random[i] = state.PlacesOf(baseline.phases[i].state, again.phases[i].state)
		}
		if leading > 0 && i > 0 {
			refs.late[i] = refs.lateRuns[min(i, leading)-1].phaseAt(i)
		}
	}
	return refs
}

// phaseAt returns the phase of that index, nil if the run ended before, or the operator did not run yet.
func (r *result) phaseAt(i int) *phase {
	if i >= len(r.phases) || r.phases[i].state == nil {
		return nil
	}
	return &r.phases[i]
}

// runLate runs the scenario without faults, and starts the operator late.
func (s *Scenario) runLate(t *testing.T, late lateStart, clock moments) *result {
	var r *Run
	inBubble(t, func(*testing.T) {
		server, err := s.newServer()
		if err != nil {
			return
		}
		r = newRun(s, server, nil, nil)
		r.clock = clock
		r.runActionsLate(late)
		time.Sleep(time.Minute) // for goroutines that end at their next tick
	})
	if r == nil {
		return &result{}
	}
	return &result{phases: r.script.phases, operations: r.operations}
}

// leadingActions returns how many of the first actions need nothing that the operator does.
func (s *Scenario) leadingActions(t *testing.T) (n int) {
	inBubble(t, func(*testing.T) {
		server, err := s.newServer()
		if err != nil {
			return
		}
		r := newRun(s, server, nil, nil)
		n = r.actWithoutOperator(len(s.Actions))
	})
	return n
}

// actWithoutOperator creates the scenario's objects, and does the given number of actions. It stops before one that lets
// time pass or changes what is outside of the cluster, and at one that fails. It returns how many it did.
func (r *Run) actWithoutOperator(actions int) int {
	r.createObjects()
	r.script.phases = append(r.script.phases, phase{name: "start"})
	for n := range actions {
		r.settleCluster()
		next := &r.scenario.Actions[n]
		if next.Do == nil || r.failure() != nil {
			return n
		}
		if early := time.Until(r.clock[len(r.script.phases)].begun); early > 0 {
			time.Sleep(early)
		}
		r.server.Advance(int64(len(r.script.phases)) * revisionsPerAction)
		if r.carryOutAction(*next, false) != nil {
			return n
		}
		r.script.done++
		r.script.phases = append(r.script.phases, phase{name: next.Name})
	}
	return actions
}

// settleCluster lets the rest of the cluster work until it has nothing to do.
func (r *Run) settleCluster() {
	for range maxClusterSteps {
		if r.observeChanges(); !r.stepCluster() {
			return
		}
	}
}

// runActionsLate does the whole run. It is called in a bubble.
func (r *Run) runActionsLate(late lateStart) {
	defer r.end()
	defer func() {
		if p := recover(); p != nil {
			r.fail(panicError("the run", p))
		}
	}()
	if r.actWithoutOperator(late.actions) < late.actions {
		return
	}
	last := len(r.script.phases) - 1
	name := r.script.phases[last].name
	r.script.phases = r.script.phases[:last]
	r.observeChanges()
	r.finishPhase(name)
	if late.stop {
		return
	}
	for action, ok := r.nextAction(); ok && r.failure() == nil; action, ok = r.nextAction() {
		r.do(action)
	}
}

// at returns the states with which that of a phase is compared. strict is true if a state must be reached at its own phase.
func (f *references) at(index int, actions []Action, strict bool) state.References {
	refs := state.References{Baseline: f.baseline.phases[index].state, Random: f.random[index]}
	if late := f.late[index]; late != nil {
		refs.Late = late.state
	}
	if !strict {
		refs.Near = f.near(index, actions)
	}
	return refs
}

// near returns the states of the other phases between which the user only waits. The last of these phases has none: there
// everything must be done. Phase i+1 ends after action i.
func (f *references) near(index int, actions []Action) []state.State {
	isWait := func(action int) bool { return action < len(actions) && actions[action].Wait > 0 }
	if !isWait(index) {
		return nil
	}
	first, last := index, index
	for first > 0 && isWait(first-1) {
		first--
	}
	for isWait(last) {
		last++
	}
	var states []state.State
	for i := first; i <= last && i < len(f.baseline.phases); i++ {
		for _, p := range []*phase{&f.baseline.phases[i], f.late[i]} {
			if p != nil && p.state != nil && i != index {
				states = append(states, p.state)
			}
		}
	}
	return states
}

// allowed returns how often the operator may have done harm by the end of a phase: as often as in one of the references.
func (f *references) allowed(index int) operations {
	allowed := f.baseline.phases[index].operations.harmful()
	if late := f.late[index]; late != nil {
		raise(allowed.deleted, late.operations.deleted)
		raise(allowed.rollouts, late.operations.rollouts)
		raise(allowed.unnamed.deleted, late.operations.unnamed.deleted)
	}
	return allowed
}

// raise sets each count to that of the other map, if that is larger.
func raise[K comparable](counts, other map[K]int) {
	for key, n := range other {
		counts[key] = max(counts[key], n)
	}
}

// createsAndKeeps reports whether the operator creates an object without faults, and never deletes it.
func (f *references) createsAndKeeps(id objectID) bool {
	for _, late := range f.lateRuns {
		if late.operations.deleted[id] > 0 {
			return false
		}
	}
	return f.baseline.operations.createsAndKeeps(id)
}

// writes returns how often the operator writes each object without faults.
func (f *references) writes() map[objectID]int {
	writes := maps.Clone(f.baseline.operations.writes)
	for _, late := range f.lateRuns {
		raise(writes, late.operations.writes)
	}
	return writes
}

// stateError returns an error if the state differs from all references.
func stateError(action string, v state.Verdict) error {
	lines := func() string {
		var all []string
		for i := range v.Wrong {
			all = append(all, v.Wrong[i].String())
		}
		return strings.Join(all, "\n  ")
	}
	switch {
	case len(v.Wrong) > 0:
		return finding{DoesNotSurvive, fmt.Errorf("after %q the state is not the same as without faults:\n  %s", action, lines())}
	case len(v.Timing) > 0:
		return finding{DependsOnTiming, fmt.Errorf("after %q the state depends on timing: either may be wrong\n  %s", action, strings.Join(v.Timing, "\n  "))}
	}
	return nil
}
