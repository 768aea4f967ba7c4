package run

import (
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// leftOf returns the goroutines that are left at the end of a run without faults. They do not fail that run. A run with faults may leave
// goroutines from the same places in the code. It fails if it leaves others.
func leftOf(ending bubble.Ending, w *world.World, died bool) []bubble.Goroutines {
	err := ending.Err()
	switch {
	case err == nil || w.Failures.First() != nil || died && !ending.Stuck:
		return nil
	case ending.Left == "" || ending.Stuck:
		w.Failures.Add(err)
		return nil
	}
	left := ending.Goroutines()
	if w.References == nil {
		return left
	}
	left = slices.DeleteFunc(left, func(g bubble.Goroutines) bool {
		return slices.ContainsFunc(w.References.Baseline.Left, func(expected bubble.Goroutines) bool { return expected.Where == g.Where })
	})
	if len(left) > 0 {
		w.Failures.Add(bubble.LeftError(left))
	}
	return nil
}
