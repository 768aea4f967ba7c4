package run

import (
	"errors"
	"fmt"

	"github.com/opblocks/opblocks/internal/simulation/failure"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// checkAlways calls the scenario's Always.
func (r *Run) checkAlways() {
	if r.scenario.Always == nil {
		return
	}
	if err := failure.Recover("Always", func() error { return r.scenario.Always(r) }); err != nil {
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
		if err := failure.Recover("Finally", func() error { return r.scenario.Finally(r) }); err != nil {
			r.Fail(fmt.Errorf("what must hold at the end does not: %w", err))
			return
		}
	}
	var err error
	if r.References == nil {
		err = r.CheckOutcomes()
	} else {
		err = errors.Join(r.Counter.CheckWrites(r.References.Writes())...)
	}
	if err != nil {
		r.Fail(err)
	}
}

// state returns what exists now.
func (r *Run) state() (state.State, error) { return r.stateWith(r.ExternalState()) }

// stateWith returns what exists now. external is what is outside of the cluster.
func (r *Run) stateWith(external string) (state.State, error) {
	r.Mu.Lock()
	objects := r.History.Objects()
	r.Mu.Unlock()
	return state.Of(objects, &r.History.Known, external, r.scenario.Ignore)
}
