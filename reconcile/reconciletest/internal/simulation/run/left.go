package run

import (
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
)

// leftOf returns the goroutines that are left in the bubble of a run without faults. They do not fail the run, and are expected in runs with
// faults. A run with faults fails if others are left.
func (r *Run) leftOf(ending bubble.Ending) []bubble.Goroutines {
	err := ending.Err()
	switch {
	case err == nil || r.Failure() != nil || r.Died && !ending.Stuck:
		return nil
	case ending.Left == "" || ending.Stuck:
		r.Fail(err)
		return nil
	}
	left := ending.Goroutines()
	if r.References == nil {
		return left
	}
	left = slices.DeleteFunc(left, func(g bubble.Goroutines) bool {
		return slices.ContainsFunc(r.References.Baseline.Left, func(expected bubble.Goroutines) bool { return expected.Where == g.Where })
	})
	if len(left) > 0 {
		r.Fail(bubble.LeftError(left))
	}
	return nil
}
