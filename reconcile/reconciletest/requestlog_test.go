package reconciletest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The log leaves out the additional pass that checks that the operator changes nothing any more.
func TestRequestLogLeavesOutTheCheckOfRest(t *testing.T) {
	s := of(soundOperators["AppliesAChildInEachPass"], reconciletest.Create(shop()))
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		env.RequestLog.AssertSent(t)
		env.Do(reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
		assert.NotEmpty(t, env.RequestLog.Requests())
		env.RequestLog.AssertSent(t, "apply ConfigMap default/web", "apply ConfigMap default/web")
	})
}

// A zero log is empty, and can be used.
func TestZeroRequestLog(t *testing.T) {
	log := &reconciletest.RequestLog{}
	assert.Empty(t, log.Requests())
	log.AssertSent(t)
	log.AssertWrites(t)
	log.Reset()
}
