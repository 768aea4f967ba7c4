package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// references are the runs without faults, with which the others are compared. One of them alone is an opinion: it may be
// wrong itself. So the operator is also started late, after the first actions. A run with faults must be as one of them.
type references struct {
	baseline *result
	again    *result        // a second run, like the baseline
	patient  *result        // a run in which the user waits after each action; see linger
	late     []*phase       // by the index of the phase; nil if there is none
	lateRuns []*result      // each of them starts the operator later than the one before
	random   []state.Places // by the index of the phase: places at which the baseline and the second run differ
	names    state.RandomNames
}

// lateStart is how a run begins without an operator.
type lateStart struct {
	actions int  // how many are done before the operator starts
	stop    bool // the run ends when the operator is quiet
}

// newReferences does the other runs without faults.
func (s *Scenario) newReferences(t *testing.T, baseline *result) *references {
	refs := &references{baseline: baseline, late: make([]*phase, len(baseline.phases)), random: make([]state.Places, len(baseline.phases))}
	leading := 0
	inSlot(func() { leading = s.leadingActions(t) })
	refs.lateRuns = make([]*result, leading)
	refs.again, refs.patient = &result{}, &result{} // they stay so if the race detector ends the run
	var runs sync.WaitGroup
	start := func(of **result, run func() *result) {
		runs.Go(func() { inSlot(func() { *of = s.guarded(run) }) })
	}
	start(&refs.again, func() *result { return s.run(t, nil, nil) })
	if !s.Strict {
		start(&refs.patient, func() *result { return s.runPatiently(t) })
	}
	for i := range leading {
		refs.lateRuns[i] = &result{}
		start(&refs.lateRuns[i], func() *result {
			return s.runLate(t, lateStart{actions: i + 1, stop: i+1 < leading}, baseline.moments)
		})
	}
	runs.Wait()
	for i := range min(len(refs.again.phases), len(baseline.phases)) {
		refs.names.Add(baseline.phases[i].state, refs.again.phases[i].state)
	}
	for i := range refs.late {
		if i < len(refs.again.phases) {
			again := refs.names.Align(refs.again.phases[i].state, baseline.phases[i].state)
			refs.random[i] = state.PlacesOf(baseline.phases[i].state, again)
		}
		if leading > 0 && i > 0 {
			refs.late[i] = refs.lateRuns[min(i, leading)-1].phaseAt(i)
		}
	}
	return refs
}

// others returns the results of all runs without faults but the baseline.
func (f *references) others() []*result {
	return append([]*result{f.again, f.patient}, f.lateRuns...)
}

// randomPlaces returns the places at which two runs without faults differ, after whichever action.
func (f *references) randomPlaces() []string {
	all := state.Places{}
	for _, places := range f.random {
		for object, paths := range places {
			all[object] = append(all[object], paths...)
		}
	}
	return append(f.names.Describe(), all.Describe()...)
}

// points returns the points of the run without faults, with names that do not depend on chance.
func (f *references) points() []point {
	points, count := slices.Clone(f.baseline.points), map[string]int{}
	for i := range points {
		p := &points[i]
		if name := f.nameAt(p.name, p.object); name != p.name {
			count[name]++
			p.name, p.nth = name, count[name]
		}
	}
	return points
}

// nameAt returns the name of a point at an object, without what is random in the object's name. f may be nil.
func (f *references) nameAt(name string, at objectID) string {
	if f == nil {
		return name
	}
	return strings.Replace(name, at.name.Name, f.names.Simplify(at.kind.Kind, at.name), 1)
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
		server, err := s.newServer(nil)
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
	return &result{phases: r.script.phases, operations: r.operations, rights: r.rights.all(), unfinished: r.unfinished}
}

// leadingActions returns how many of the first actions need nothing that the operator does.
func (s *Scenario) leadingActions(t *testing.T) (n int) {
	inBubble(t, func(*testing.T) {
		server, err := s.newServer(nil)
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
		r.stopIfDue()
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

// at returns the states with which the state of a phase is compared. strict is true if a state must be reached at its
// own phase. Otherwise the operator may also be further: as far as it gets by itself if the user waits.
func (f *references) at(index int, actions []Action, strict bool) state.References {
	refs := state.References{Baseline: f.baseline.phases[index].state, Random: f.random[index], Near: slices.Clone(f.baseline.phases[index].later)}
	if late := f.late[index]; late != nil {
		refs.Late = f.names.Align(late.state, refs.Baseline)
		refs.Near = append(refs.Near, late.later...)
	}
	if !strict {
		refs.Near = append(refs.Near, f.near(index, actions)...)
		if p := f.patientPhase(index); p != nil {
			refs.Near = append(refs.Near, p.later...)
		}
	}
	for i, s := range refs.Near {
		refs.Near[i] = f.names.Align(s, refs.Baseline)
	}
	return refs
}

// patientPhase returns the phase of the patient run, nil if there is none. For the last phase there is none: there everything
// must be done, and nothing more.
func (f *references) patientPhase(index int) *phase {
	if index == len(f.baseline.phases)-1 {
		return nil
	}
	return f.patient.phaseAt(index)
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
	for _, p := range []*phase{f.late[index], f.patientPhase(index)} {
		if p != nil {
			raise(allowed.deleted, p.operations.deleted)
			raise(allowed.rollouts, p.operations.rollouts)
			raise(allowed.unnamed.deleted, p.operations.unnamed.deleted)
		}
	}
	return allowed
}

// raise sets each count to the count in the other map, if that is larger.
func raise[K comparable](counts, other map[K]int) {
	for key, n := range other {
		counts[key] = max(counts[key], n)
	}
}

// createsAndKeeps reports whether the operator creates an object without faults, and never deletes it.
func (f *references) createsAndKeeps(id objectID) bool {
	for _, other := range f.others() {
		if other.operations.deleted[id] > 0 {
			return false
		}
	}
	return f.baseline.operations.createsAndKeeps(id)
}

// writes returns how often the operator writes each object without faults.
func (f *references) writes() map[objectID]int {
	writes := maps.Clone(f.baseline.operations.writes)
	for _, other := range f.others() {
		raise(writes, other.operations.writes)
	}
	return writes
}

// stateError returns an error if the state differs from all references.
func stateError(action string, v state.Verdict) error {
	switch {
	case len(v.Wrong) > 0:
		lines := make([]string, len(v.Wrong))
		for i := range v.Wrong {
			lines[i] = v.Wrong[i].String()
		}
		lines = append(firstLines(lines), v.Notes...)
		return finding{kinds.DoesNotSurvive, fmt.Errorf("after %q the state is not the same as without faults:\n  %s", action, strings.Join(lines, "\n  "))}
	case len(v.Timing) > 0:
		return finding{kinds.DependsOnTiming, fmt.Errorf("after %q the state depends on timing: either may be wrong\n  %s", action, strings.Join(firstLines(v.Timing), "\n  "))}
	}
	return nil
}

// maxDifferences is how many differences an error lists.
const maxDifferences = 12

// firstLines returns the first lines, and how many there are beyond them.
func firstLines(lines []string) []string {
	if len(lines) <= maxDifferences {
		return lines
	}
	return append(slices.Clone(lines[:maxDifferences]), fmt.Sprintf("and %d more", len(lines)-maxDifferences))
}
