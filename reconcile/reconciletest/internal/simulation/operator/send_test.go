package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
)

func TestFaultRules(t *testing.T) {
	for _, rule := range plan.Rules {
		assert.NotEmpty(t, rule.Words, "the trace explains %q", rule.Kind)
		assert.Equal(t, rule.Requests == nil, handlers[rule.Kind] == nil, "%q has a handler if it is injected at requests", rule.Kind)
	}
}
