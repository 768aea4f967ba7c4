package reconciletest

import (
	"testing"
	"time"
)

// FaultKinds returns all kinds.
func FaultKinds() []FaultKind { return faultKinds() }

// EndOf returns when an exploration ends, and why if that is because of the deadline.
var EndOf = endOf

// ExploreUntil explores the scenario in a test with the deadline.
func ExploreUntil(t *testing.T, s Scenario, deadline time.Time) *Report {
	t.Helper()
	return explore(t, s, nil, deadline, nil)
}
