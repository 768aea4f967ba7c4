package simulation

import (
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// moreRuns is the number of further runs without faults. They tell a value that the test program keeps from a random value. If a value is
// one of two at random, the first run alone differs from all others in one of 8192 explorations.
const moreRuns = 12

// checkLeftover returns the result of a failed run if the operator keeps something in the test program from one run to the next. This is so
// if the first run without faults differs from all later ones, and the later ones are equal. Otherwise it returns nil. If the first two
// runs are equal, it does no further run. If values are random, it does few.
func (e *explorer) checkLeftover() *result.Result {
	again, differ := e.refs.Again, state.Places{}
	for _, places := range e.refs.Random {
		differ.Add(places)
	}
	for range moreRuns {
		if len(differ) == 0 {
			return nil
		}
		var r *result.Result
		inSlot(func() {
			r = e.scenario.Guarded(func(s *run.Scenario) *result.Result { return s.Run(e.t, nil, nil) })
		})
		if r.Err != nil || len(r.Phases) != len(again.Phases) {
			return nil
		}
		random := state.Places{}
		for i := range r.Phases {
			random.Add(state.PlacesOf(again.Phases[i].State, e.refs.Names.Align(r.Phases[i].State, again.Phases[i].State)))
		}
		differ = differ.Without(random)
	}
	if len(differ) == 0 {
		return nil
	}
	again.Err = failure.Finding{Kind: kinds.DoesNotSurvive, Cause: "state in the test program", Err: fmt.Errorf("the first run without faults ends otherwise than the %d later ones, which end alike: %s\n"+
		"The operator keeps something in the test program from one run to the next, such as a map in a package variable. A process in a cluster begins without it: make it in Start",
		moreRuns+1, strings.Join(differ.Describe(), ", "))}
	return again
}
