package run

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// judge compares the state after a phase with the states of runs without faults.
type judge struct {
	scenario *Scenario
	world    *world.World
	actions  *actions
}

// state returns what exists now. external is what is outside of the cluster.
func (j *judge) state(external string) (state.State, error) {
	w := j.world
	w.Mu.Lock()
	objects := w.History.Objects()
	w.Mu.Unlock()
	w.History.Known.SetOutside(w.Identities())
	return state.Of(objects, &w.History.Known, external, j.scenario.Ignore)
}

// unchanged returns the phase of the run without faults with this index, if this run is still equal to that one: in all changes of objects
// until the end of the phase, and in the state outside of the cluster. If a fault has made a difference, it returns nil.
func (j *judge) unchanged(index int, ended *result.Phase) *result.Phase {
	if j.world.References == nil || !j.world.Server.Repeats() {
		return nil
	}
	same := j.world.References.Baseline.PhaseAt(index)
	if same == nil || same.Revision != ended.Revision || same.External != ended.External {
		return nil
	}
	return same
}

// compare returns an error if the state of the phase differs from the states of the runs without faults. In a run without faults every
// state is right.
func (j *judge) compare(index int, ended *result.Phase) error {
	references := j.world.References
	if references == nil {
		return nil
	}
	want := references.At(index, j.actions.isWait, j.scenario.Strict)
	want.Removed = j.world.Others.Removed
	got := j.world.WithoutPassedOver(ended.State, want.Baseline)
	verdict := want.Judge(references.Names.Align(got, want.Baseline))
	return j.explainByOrphans(index, ended.Name, result.StateError(ended.Name, verdict, j.side))
}

// explainByOrphans returns the difference. If more things without an owner are left outside of the cluster than without faults, it returns
// that error before the difference, unless the scenario leaves out such findings.
func (j *judge) explainByOrphans(index int, action string, difference error) error {
	if difference == nil {
		return nil
	}
	left := j.world.Orphans()
	without := j.world.References.Baseline.PhaseAt(index)
	if without == nil || len(left) <= len(without.Orphans) || slices.Contains(j.scenario.Silent, kinds.LeavesOutside) {
		return difference
	}
	return errors.Join(world.OrphanError(action, left), difference)
}

// side returns a line that says which state is right by the scenario's checks: the present one, or the state without faults. In the run
// without faults all checks have succeeded. If a check fails now, the present state is wrong.
func (j *judge) side() (line string, wrong bool) {
	asked, err := j.actions.then != nil, j.actions.checkThen(j.world)
	if j.actions.haveBegun() && j.scenario.Finally != nil {
		asked = true
		err = errors.Join(err, j.scenario.checkFinally(j.world))
	}
	switch {
	case err != nil:
		return fmt.Sprintf("This run is wrong: what the scenario asks for is true without faults, and not here: %s", err), true
	case asked:
		return "What the scenario asks for is true in both, so it does not say which of the two is right", false
	}
	return "Which of the two is right, the scenario does not say: see Action.Then", false
}
