package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// After a failure of a process that sees the past, the report says how to avoid it.
func TestReportExplainsThePast(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, faultyEffects["EffectForADeletedObject"].scenario(false)).String()
	assert.Contains(t, report, "it must read from the API server")
	assert.Contains(t, report, "modified Shop default/web #2 (metadata.deletionTimestamp")
}
