package run

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// finishPhase lets the operator become quiet. Then it checks the state, and that the operator rests. If a fault is
// injected during restCheck, or work becomes due, the operator has to become quiet again, and both checks are repeated.
func (s *script) finishPhase(name string) {
	rest := restCheck{Run: s.Run}
	for {
		if s.settle(); s.Failure() != nil {
			return
		}
		if s.IsDown() { // no process has worked since the action
			s.phases = append(s.phases, result.Phase{Name: name})
			return
		}
		quiet, err := s.checkPhase(name)
		if err != nil {
			s.Fail(err)
		}
		if s.Failure() != nil {
			return
		}
		before := s.Version()
		if rest.run() {
			if s.References == nil && s.Version() != before { // the operator does not rest, which is left out
				quiet.Later = append(quiet.Later, s.stateAfterRest()...)
			}
			s.phases = append(s.phases, quiet)
			return
		}
	}
}

// checkPhase returns the phase that has ended. It returns an error if the state is not the same as without faults, if the
// operator lost what another writer wrote, or if it did harm.
func (s *script) checkPhase(name string) (result.Phase, error) {
	s.Mu.Lock()
	err := s.Others.Check()
	s.Mu.Unlock()
	if err != nil {
		return result.Phase{}, err
	}
	if s.References == nil {
		operator.VerdictOf(s.Operator).Rest(name)
	}
	if err := s.DuplicateError(name); err != nil {
		return result.Phase{}, err
	}
	index := len(s.phases)
	quiet := result.Phase{Orphans: s.Orphans(), Name: name, Revision: s.Server.Revision(), External: s.ExternalState(), Operations: s.Counter.Harmful()}
	if same := s.unchangedPhase(index, &quiet); same != nil {
		quiet.State = same.State // it is right: it is the reference
	} else {
		if quiet.State, err = s.stateWith(quiet.External); err != nil {
			return result.Phase{}, err
		}
		if err := s.judge(index, &quiet); err != nil {
			return quiet, s.explainByOrphans(index, name, err)
		}
	}
	if err := s.checkThen(); err != nil {
		return quiet, asked(fmt.Errorf("after %q what must be true is not: %w", name, err))
	}
	if s.References != nil {
		allowed := s.References.Allowed(index)
		if err := s.CheckOperations(&allowed); err != nil {
			return quiet, err
		}
	}
	return quiet, nil
}

// unchangedPhase returns the same phase of the run without faults, if all changes of objects until its end were equal, and what is
// outside of the cluster is equal. Both are equal until a fault makes a difference. Then unchangedPhase returns nil.
func (s *script) unchangedPhase(index int, ended *result.Phase) *result.Phase {
	if s.References == nil || !s.Server.Repeats() {
		return nil
	}
	same := s.References.Baseline.PhaseAt(index)
	if same == nil || same.Revision != ended.Revision || same.External != ended.External {
		return nil
	}
	return same
}

// judge returns an error if the phase has another state than the references. Without references every state is right.
func (s *script) judge(index int, ended *result.Phase) error {
	if s.References == nil {
		return nil
	}
	want := s.References.At(index, s.isWait, s.scenario.Strict)
	want.Removed = s.Others.Removed
	verdict := want.Judge(s.References.Names.Align(ended.State, want.Baseline))
	return result.StateError(ended.Name, verdict, s.side)
}

// explainByOrphans returns an error that says that something is left outside of the cluster, if that is so and not meant. Otherwise it
// returns the difference.
func (s *script) explainByOrphans(index int, action string, difference error) error {
	left := s.Orphans()
	without := s.References.Baseline.PhaseAt(index)
	if without == nil || len(left) <= len(without.Orphans) || slices.Contains(s.scenario.Silent, kinds.LeavesOutside) {
		return difference
	}
	return errors.Join(world.OrphanError(action, left), difference)
}

// stateAfterRest returns the state to which the passes of restCheck have led. A process that starts again gets there too.
func (s *script) stateAfterRest() []state.State {
	if s.settle(); s.Failure() != nil {
		return nil
	}
	now, err := s.state()
	if err != nil {
		return nil
	}
	return []state.State{now}
}
