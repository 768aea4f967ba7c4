package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// noteLeftOutside inserts a finding if something is left outside of the cluster at the end of the run without faults. An API of package
// fakeapi knows for which objects each thing was created: the thing is left if these are deleted. Any other External is only asked for its
// state: something is left if the user has deleted everything that he created, and the state has more than at the beginning. A
// comparison of runs cannot find that: nearly all runs leave the same, and if the operator starts only after the deletion, it never creates
// anything.
func (e *explorer) noteLeftOutside() {
	if e.scenario.External == nil {
		return
	}
	left, deleted := e.baseline.Phases[len(e.baseline.Phases)-1].Orphans, "the object of each of these things"
	if len(left) == 0 && !slices.ContainsFunc(e.scenario.Actions, func(a run.Action) bool { return a.DoExternal != nil }) {
		left, deleted = e.leftOutside(), "everything that the user has created"
	}
	if len(left) == 0 {
		return
	}
	e.note(Failure{Kind: kinds.LeavesOutside, Cause: "is left outside after the deletion", Err: fmt.Errorf("%s is deleted, and this is left outside after the deletion:\n  %s\n"+
		"Remove it before the finalizer is removed. If it is meant to stay, leave it out of the State of the scenario's External, or add "+
		"reconciletest.Findings.LeavesOutside to Options.SkipFindings", deleted, strings.Join(left, "\n  "))})
}

// leftOutside returns what is outside of the cluster in the end and was not there at the beginning. It returns nothing if an object of
// the user still exists.
func (e *explorer) leftOutside() []string {
	if !e.usersObjectsAreGone() {
		return nil
	}
	begun, ended := e.beginAndEnd()
	return state.AddedOutside(begun, ended)
}

// beginAndEnd returns the states before the first action and after the last one.
func (e *explorer) beginAndEnd() (begun, ended state.State) {
	phases := e.baseline.Phases
	return phases[0].State, phases[len(phases)-1].State
}

// usersObjectsAreGone reports whether the user has created objects, and all of them are gone in the end.
func (e *explorer) usersObjectsAreGone() bool {
	phases := e.baseline.Phases
	begun, ended := e.beginAndEnd()
	byOperator := map[string]bool{}
	for id := range e.baseline.Operations.Created {
		byOperator[id.Kind.Kind+" "+state.NameOf(id.Name)] = true
	}
	isUsers := func(key string) bool { return key != state.External && begun[key] == nil && !byOperator[key] }
	hasUsers := func(s state.State) bool {
		for key := range s {
			if isUsers(key) {
				return true
			}
		}
		return false
	}
	return !hasUsers(ended) && slices.ContainsFunc(phases, func(p result.Phase) bool { return hasUsers(p.State) })
}
