//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestSoundOperatorsSurvive(t *testing.T) {
	for name, operator := range soundOperators {
		t.Run(name, func(t *testing.T) {
			s := of(operator, reconciletest.Create(shop()),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "less" }))
			s.External = newAccounts
			report := reconciletest.Explore(t, with(s, reconciletest.Options{SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.BreaksConvention}})) // writes that change nothing
			assert.NotEmpty(t, report.Survived)
		})
	}
}
