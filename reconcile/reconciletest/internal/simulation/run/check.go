package run

import (
	"fmt"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// checkRemedy says what to do if a check does not return.
const checkRemedy = "a check is called when the operator is quiet; it reads what is there and returns, and waits for nothing"

// checkAlways calls the scenario's Always.
func (s *Scenario) checkAlways(w *world.World) error {
	if s.Always == nil {
		return nil
	}
	if err := failure.Call("Always", checkRemedy, func() error { return s.Always(w) }); err != nil {
		return fmt.Errorf("what must always hold does not: %w", err)
	}
	return nil
}

// checkFinally calls the scenario's Finally.
func (s *Scenario) checkFinally(w *world.World) error {
	if s.Finally == nil {
		return nil
	}
	return failure.Call("Finally", checkRemedy, func() error { return s.Finally(w) })
}

// checkThen calls the Then of the last action.
func (a *actions) checkThen(w *world.World) error {
	if a.then == nil {
		return nil
	}
	return failure.Call("Then", checkRemedy, func() error { return a.then(w) })
}

// asked returns the error as a finding about a check that the scenario asks for.
func asked(err error) error {
	return failure.Finding{Kind: failure.KindOf(err), Err: err, Asked: true}
}
