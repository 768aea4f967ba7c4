package simulation

import "github.com/opblocks/opblocks/internal/simulation/state"

// phase is the result of an action: what existed when the operator was quiet after it.
type phase struct {
	name       string
	state      state.State // nil: the operator did not become quiet between this action and the next one
	revision   int64       // the server's revision then
	external   string      // what was outside of the cluster then
	operations operations
	later      []state.State // the states that the operator would reach by itself before the next action; see linger
}

// finishPhase lets the operator become quiet. Then it checks the state, and that the operator rests. If a fault is
// injected during checkRest, or work becomes due, the operator has to become quiet again, and both checks are repeated.
func (r *Run) finishPhase(name string) {
	due := 0
	for {
		if r.settle(); r.failure() != nil {
			return
		}
		if r.isDown() { // no process has worked since the action
			r.script.phases = append(r.script.phases, phase{name: name})
			return
		}
		quiet, err := r.checkPhase(name)
		if err != nil {
			r.fail(err)
		}
		if r.failure() != nil {
			return
		}
		before := r.version()
		if r.checkRest(&due) {
			if r.references == nil && r.version() != before { // the operator does not rest, which is left out
				quiet.later = append(quiet.later, r.stateAfterRest()...)
			}
			r.script.phases = append(r.script.phases, quiet)
			return
		}
	}
}

// checkPhase returns the phase that has ended. It returns an error if the state is not the same as without faults, if the
// operator lost what another writer wrote, or if it did harm.
func (r *Run) checkPhase(name string) (phase, error) {
	if err := r.checkOtherWrites(); err != nil {
		return phase{}, err
	}
	index := len(r.script.phases)
	quiet := phase{name: name, revision: r.server.Revision(), external: r.externalState(), operations: r.operations.harmful()}
	if same := r.unchangedPhase(index, &quiet); same != nil {
		quiet.state = same.state // it is right: it is the reference
	} else {
		var err error
		if quiet.state, err = r.stateWith(quiet.external); err != nil {
			return phase{}, err
		}
		if err := r.judge(index, &quiet); err != nil {
			return quiet, err
		}
	}
	if r.references != nil {
		allowed := r.references.allowed(index)
		if err := r.checkOperations(&allowed); err != nil {
			return quiet, err
		}
	}
	return quiet, nil
}

// unchangedPhase returns the same phase of the run without faults, if all changes of objects until its end were equal, and what is
// outside of the cluster is equal. Both are equal until a fault makes a difference. Then unchangedPhase returns nil.
func (r *Run) unchangedPhase(index int, ended *phase) *phase {
	if r.references == nil || !r.server.Repeats() {
		return nil
	}
	same := r.references.baseline.phaseAt(index)
	if same == nil || same.revision != ended.revision || same.external != ended.external {
		return nil
	}
	return same
}

// judge returns an error if the phase has another state than the references. Without references every state is right.
func (r *Run) judge(index int, ended *phase) error {
	if r.references == nil {
		return nil
	}
	want := r.references.at(index, r.scenario.Actions, r.scenario.Strict)
	return stateError(ended.name, want.Judge(r.references.names.Align(ended.state, want.Baseline)))
}
