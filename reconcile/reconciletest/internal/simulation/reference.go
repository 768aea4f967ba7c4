package simulation

import (
	"sync"
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// newReferences does the further runs without faults, with which runs are compared. baseline is the first run without faults.
func newReferences(t *testing.T, s *run.Scenario, baseline *result.Result) *result.References {
	refs := &result.References{Baseline: baseline, Late: make([]*result.Phase, len(baseline.Phases)), Random: make([]state.Places, len(baseline.Phases))}
	refs.Again, refs.Patient = &result.Result{}, &result.Result{} // if the race detector ends a run, its result stays empty
	guarded := func(of **result.Result, run func(s *run.Scenario) *result.Result) {
		inSlot(func() { *of = s.Guarded(run) })
	}
	counted := &result.Result{}
	guarded(&counted, func(s *run.Scenario) *result.Result { return &result.Result{Leading: s.LeadingActions(t)} })
	if counted.Hung || counted.Unfinished != "" {
		refs.LateRuns = []*result.Result{counted}
		return refs
	}
	leading := counted.Leading
	refs.LateRuns = make([]*result.Result, leading)
	var runs sync.WaitGroup
	start := func(of **result.Result, run func(s *run.Scenario) *result.Result) {
		runs.Go(func() { guarded(of, run) })
	}
	start(&refs.Again, func(s *run.Scenario) *result.Result { return s.Run(t, nil, nil) })
	if !s.Strict {
		start(&refs.Patient, func(s *run.Scenario) *result.Result { return s.RunPatiently(t) })
	}
	for i := range leading {
		refs.LateRuns[i] = &result.Result{}
		start(&refs.LateRuns[i], func(s *run.Scenario) *result.Result {
			return s.RunLate(t, run.LateStart{Actions: i + 1, Stop: i+1 < leading}, baseline.Moments)
		})
	}
	runs.Wait()
	refs.FindClaims()
	for i := range min(len(refs.Again.Phases), len(baseline.Phases)) {
		refs.Names.Add(baseline.Phases[i].State, refs.Again.Phases[i].State)
	}
	for i := range refs.Late {
		if i < len(refs.Again.Phases) {
			again := refs.Names.Align(refs.Again.Phases[i].State, baseline.Phases[i].State)
			refs.Random[i] = state.PlacesOf(baseline.Phases[i].State, again)
		}
		if leading > 0 && i > 0 {
			refs.Late[i] = refs.LateRuns[min(i, leading)-1].PhaseAt(i)
		}
	}
	return refs
}
