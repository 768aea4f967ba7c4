//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// allFaults tries all faults also with go test -short: a sample may leave out the fault that shows the mistake.
var allFaults = reconciletest.Options{Limit: math.MaxInt}

// TestFindsEveryFault shows that the exploration finds each typical mistake of operators, and that it finds nothing in the same operator
// without the mistake.
func TestFindsEveryFault(t *testing.T) {
	found := 0
	useful := map[reconciletest.FaultKind]bool{}
	for name, f := range faultyOperators {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.ExploreQuietly(t, with(f.scenario(false), allFaults))
			if !assert.NotEmpty(t, report.Failures, "not found: %s", f.reason) {
				return
			}
			text := report.String()
			for _, want := range f.says {
				assert.Contains(t, text, want, f.reason)
			}
			for _, wrong := range f.never {
				assert.NotContains(t, text, wrong, f.reason)
			}
			for _, failure := range report.Failures {
				if f.kind != (reconciletest.FindingKind{}) {
					assert.Equal(t, f.kind, failure.Kind, "%v: %s", failure.Faults, failure.Err)
				}
				if len(failure.Faults) == 1 {
					useful[failure.Faults[0].Kind] = true
				}
			}
			if f.fault == (reconciletest.FaultKind{}) {
				assert.Empty(t, report.Failures[0].Faults, "it is found without any fault")
			} else {
				assert.True(t, hasFault(report, f.fault), "none of the failures is of kind %q:\n%s", f.fault, text)
			}
			found++
			reconciletest.Explore(t, f.scenario(true))
		})
	}
	t.Logf("found %d of %d", found, len(faultyOperators))
	if found == len(faultyOperators) { // go test -run has left out none
		assert.ElementsMatch(t, reconciletest.AllFaults(), slices.Collect(maps.Keys(useful)), "each kind of fault finds something")
	}
}

// faultyOperators has the operators by the name of their mistake.
var faultyOperators = merged(faultyFinalizers, faultyStatus, faultyChildren, faultyEffects, faultyWiring, faultyTiming, faultyMemory,
	faultyOutside, faultyOwners, faultyReported, faultyAnswers, faultyPolls, faultyRandom, faultyReady, faultyCreations,
	faultyForeign, faultyOutages, faultyEntries, faultyShared, faultyRefusals, faultyWebhooks, faultyConversions)

func merged(all ...map[string]faulty) map[string]faulty {
	made := map[string]faulty{}
	for _, some := range all {
		for name, f := range some {
			if _, twice := made[name]; twice || strings.TrimSpace(f.reason) == "" {
				panic("faulty operator " + name)
			}
			made[name] = f
		}
	}
	return made
}
