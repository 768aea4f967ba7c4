package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// References are the runs without faults, with which runs with faults are compared. The first one, the baseline, is not enough: it may be
// wrong itself. So in other runs the operator starts late, after the first actions. A run with faults must lead to the same state as one of
// these runs.
type References struct {
	Baseline *Result
	Again    *Result        // a second run that does the same as the baseline
	Patient  *Result        // a run in which the user waits after each action
	Late     []*Phase       // for each phase, the phase of a run with a late start; nil if there is none
	LateRuns []*Result      // each of them starts the operator later than the one before
	Random   []state.Places // for each phase: the paths at which the baseline and the second run differ
	Names    state.RandomNames
	Claims   map[string]string // see [state.Claims]
}

// Others returns the results of all runs without faults, except the baseline.
func (f *References) Others() []*Result {
	return append([]*Result{f.Again, f.Patient}, f.LateRuns...)
}

// FindClaims sets the PersistentVolumeClaims that stay when their StatefulSet is deleted. It leaves out claims that the operator creates
// itself.
func (f *References) FindClaims() {
	var states []state.State
	for i := range f.Baseline.Phases {
		states = append(states, f.Baseline.Phases[i].State)
	}
	f.Claims = state.Claims(states)
	for id := range f.Baseline.Operations.Created {
		delete(f.Claims, id.String())
	}
}

// RandomPlaces returns the paths at which two runs without faults differ after any action, and random names.
func (f *References) RandomPlaces() []string {
	all := state.Places{}
	for _, places := range f.Random {
		all.Add(places)
	}
	return append(f.Names.Describe(), all.Describe()...)
}

// Points returns the points of the run without faults. Their names do not contain the random parts of names of objects.
func (f *References) Points() []plan.Point {
	points, count := slices.Clone(f.Baseline.Points), map[string]int{}
	for i := range points {
		p := &points[i]
		if name := f.NameAt(p.Name, p.Object); name != p.Name {
			count[name]++
			p.Name, p.Nth = name, count[name]
		}
	}
	return points
}

// NameAt returns the name of a request or a change of an object, as reports print it. If a part of the object's name is random, the name
// has a star there. f may be nil.
func (f *References) NameAt(name string, at request.ObjectID) string {
	if f == nil {
		return name
	}
	return strings.Replace(name, at.Name.Name, f.Names.Simplify(at.Kind.Kind, at.Name), 1)
}

// At returns the states with which the state of a phase is compared. If strict is true, the operator must be exactly as far as in a run
// without faults. Otherwise it may be further, as far as it gets by itself if the user waits. isWait reports whether the action with that
// index is a wait.
func (f *References) At(index int, isWait func(action int) bool, strict bool) state.References {
	refs := state.References{Baseline: f.Baseline.Phases[index].State, Random: f.Random[index], Claims: f.Claims, Near: slices.Clone(f.Baseline.Phases[index].Later)}
	if late := f.Late[index]; late != nil {
		refs.Late = f.Names.Align(late.State, refs.Baseline)
		refs.Near = append(refs.Near, late.Later...)
	}
	if !strict {
		refs.Near = append(refs.Near, f.near(index, isWait)...)
		if p := f.patientPhase(index); p != nil {
			refs.Near = append(refs.Near, p.Later...)
		}
	}
	for i, s := range refs.Near {
		refs.Near[i] = f.Names.Align(s, refs.Baseline)
	}
	return refs
}

// patientPhase returns the phase of the run in which the user waits after each action. It returns nil if that run has none. It also returns
// nil for the last phase, in which the operator must be exactly as far as without faults.
func (f *References) patientPhase(index int) *Phase {
	if index == len(f.Baseline.Phases)-1 {
		return nil
	}
	return f.Patient.PhaseAt(index)
}

// near returns the states of the neighbouring phases, if only waits are between them and the given phase. If the user does not wait after
// the phase, it returns none: then everything must be done. Phase i+1 ends after action i.
func (f *References) near(index int, isWait func(action int) bool) []state.State {
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
	for i := first; i <= last && i < len(f.Baseline.Phases); i++ {
		for _, p := range []*Phase{&f.Baseline.Phases[i], f.Late[i]} {
			if p != nil && p.State != nil && i != index {
				states = append(states, p.State)
			}
		}
	}
	return states
}

// Allowed returns how often the operator may have done each kind of harm by the end of a phase: the largest number in a run without faults.
func (f *References) Allowed(index int) Operations {
	allowed := f.Baseline.Phases[index].Operations.Harmful()
	for _, p := range []*Phase{f.Late[index], f.patientPhase(index)} {
		if p != nil {
			raise(allowed.Deleted, p.Operations.Deleted)
			raise(allowed.Rollouts, p.Operations.Rollouts)
			raise(allowed.Unnamed.Deleted, p.Operations.Unnamed.Deleted)
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

// CreatesAndKeeps reports whether the operator creates an object without faults, and never deletes it.
func (f *References) CreatesAndKeeps(id request.ObjectID) bool {
	for _, other := range f.Others() {
		if other.Operations.Deleted[id] > 0 {
			return false
		}
	}
	return f.Baseline.Operations.createsAndKeeps(id)
}

// Writes returns how often the operator writes each object without faults.
func (f *References) Writes() map[request.ObjectID]int {
	writes := maps.Clone(f.Baseline.Operations.Writes)
	for _, other := range f.Others() {
		raise(writes, other.Operations.Writes)
	}
	return writes
}

// StateError returns an error if v has wrong changes, or differences that depend on timing. side says whether the scenario's checks show
// which of two states is right. wrong is true if a check fails now.
func StateError(action string, v state.Verdict, side func() (line string, wrong bool)) error {
	switch {
	case len(v.Wrong) > 0:
		lines := make([]string, len(v.Wrong))
		for i := range v.Wrong {
			lines[i] = v.Wrong[i].String()
		}
		lines = append(firstLines(lines), v.Notes...)
		main := v.Main()
		line, asked := side()
		return failure.Finding{Kind: kinds.DoesNotSurvive, Cause: main.Cause(), Object: main.Object, Asked: asked, Err: fmt.Errorf("after %q the state is not the same as without faults:\n  %s\n%s", action, strings.Join(lines, "\n  "), line)}
	case len(v.Timing) > 0:
		lines := make([]string, len(v.Timing))
		for i := range v.Timing {
			lines[i] = v.Timing[i].Line
		}
		return failure.Finding{Kind: kinds.DependsOnTiming, Cause: v.Timing[0].Cause, Object: v.Timing[0].Object, Err: fmt.Errorf("after %q the state depends on timing: either may be wrong\n  %s", action, strings.Join(firstLines(lines), "\n  "))}
	}
	return nil
}

// maxDifferences is how many differences an error lists.
const maxDifferences = 12

// firstLines returns the first lines, and a line with the number of the others.
func firstLines(lines []string) []string {
	if len(lines) <= maxDifferences {
		return lines
	}
	return append(slices.Clone(lines[:maxDifferences]), fmt.Sprintf("and %d more", len(lines)-maxDifferences))
}
