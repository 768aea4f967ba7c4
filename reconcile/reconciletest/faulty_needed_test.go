//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestFaultsOfAPIsAreNeeded shows that the faults StaleAnswer and Outage are needed: no other fault finds the mistakes that they find. The
// exception is a leader change, which also leads to a second creation.
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
