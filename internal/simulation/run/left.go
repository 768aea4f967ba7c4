package run

import (
	"slices"

	"github.com/opblocks/opblocks/internal/simulation/bubble"
)

// leftOf fails the run if goroutines are left in its bubble. A run without faults does not fail if there is one from each place, since
// such goroutines do not add up while the process runs: leftOf returns these places. In a run with faults they are expected.
func (r *Run) leftOf(ending bubble.Ending) (places []string) {
	err := ending.Err()
	switch {
	case err == nil || r.Failure() != nil || r.Died && !ending.Stuck:
		return nil
	case ending.Left == "" || ending.Stuck:
		r.Fail(err)
		return nil
	}
	left := ending.Goroutines()
	if r.References != nil {
		left = slices.DeleteFunc(left, func(g bubble.Goroutines) bool { return slices.Contains(r.References.Baseline.Left, g.Where) })
	}
	if r.References != nil && len(left) > 0 || slices.ContainsFunc(left, func(g bubble.Goroutines) bool { return g.Count > 1 }) {
		r.Fail(bubble.LeftError(left))
		return nil
	}
	for _, g := range left {
		places = append(places, g.Where)
	}
	return places
}
