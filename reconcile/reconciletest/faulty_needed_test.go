//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package reconciletest_test

import (
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestFaultsOfAPIsAreNeeded shows that no other fault finds the mistakes for which stale answers and outages are there, except a second
// leader, which creates again too.
func TestFaultsOfAPIsAreNeeded(t *testing.T) {
	for name, f := range merged(faultyCreations, faultyForeign, faultyOutages) {
		if f.fault != reconciletest.Faults.StaleAnswer && f.fault != reconciletest.Faults.Outage {
			continue
		}
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, with(f.scenario(false), reconciletest.Options{SkipFaults: []reconciletest.FaultKind{f.fault, reconciletest.Faults.LeaderChange}}))
		})
	}
}
