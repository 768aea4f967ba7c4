package run

import (
	"errors"
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// checkRemedy says what to do if a check does not return.
const checkRemedy = "a check is called when the operator is quiet; it reads what is there and returns, and waits for nothing"

// checkAlways calls the scenario's Always.
func (r *Run) checkAlways() {
	if r.scenario.Always == nil {
		return
	}
	if err := failure.Call("Always", checkRemedy, func() error { return r.scenario.Always(r) }); err != nil {
		r.Fail(fmt.Errorf("what must always hold does not: %w", err))
	}
}

// checkEnd calls the scenario's Finally. Without faults it also checks how the last passes ended; with faults, how often
// each object was written.
func (r *Run) checkEnd() {
	if r.Failure() != nil {
		return
	}
	if r.scenario.Finally != nil {
		if err := failure.Call("Finally", checkRemedy, func() error { return r.scenario.Finally(r) }); err != nil {
			r.Fail(asked(fmt.Errorf("what must hold at the end does not: %w", err)))
			return
		}
	}
	if r.References == nil {
		r.checkSuccess()
		return
	}
	if err := errors.Join(r.Counter.CheckWrites(r.References.Writes())...); err != nil {
		r.Fail(err)
	}
}

// checkSuccess checks at the end of a run without faults that the operator succeeds.
func (r *Run) checkSuccess() {
	r.unsuccessful = operator.VerdictOf(r.Operator).Check(r.scenario.Unready)
	if len(r.unsuccessful) > 0 && !r.NoteSilenced(kinds.DoesNotSucceed) {
		r.Fail(r.unsuccessful[0])
	}
}

// asked marks an error about something that the scenario asks for.
func asked(err error) error {
	return failure.Finding{Kind: failure.KindOf(err), Err: err, Asked: true}
}

// checkThen calls the Then of the last action.
func (s *script) checkThen() error {
	if s.then == nil {
		return nil
	}
	return failure.Call("Then", checkRemedy, func() error { return s.then(s.Run) })
}

// side says which of two states the scenario asks for: the present one, or the one without faults, after which each check has
// succeeded. wrong is true if the present one is not what the scenario asks for.
func (s *script) side() (line string, wrong bool) {
	asked, err := s.then != nil, s.checkThen()
	if s.done == len(s.scenario.Actions) && s.scenario.Finally != nil {
		asked = true
		err = errors.Join(err, failure.Call("Finally", checkRemedy, func() error { return s.scenario.Finally(s.Run) }))
	}
	switch {
	case err != nil:
		return fmt.Sprintf("This run is wrong: what the scenario asks for is true without faults, and not here: %s", err), true
	case asked:
		return "What the scenario asks for is true in both, so it does not say which of the two is right", false
	}
	return "Which of the two is right, the scenario does not say: see Action.Then", false
}

// state returns what exists now.
func (r *Run) state() (state.State, error) { return r.stateWith(r.ExternalState()) }

// stateWith returns what exists now. external is what is outside of the cluster.
func (r *Run) stateWith(external string) (state.State, error) {
	r.Mu.Lock()
	objects := r.History.Objects()
	r.Mu.Unlock()
	r.History.Known.SetOutside(r.Identities())
	return state.Of(objects, &r.History.Known, external, r.scenario.Ignore)
}
