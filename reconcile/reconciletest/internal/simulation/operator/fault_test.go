package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

func TestRules(t *testing.T) {
	for _, rule := range kinds.Rules {
		assert.NotEmpty(t, rule.Words, "the trace explains %q", rule.Kind)
		does := atRequests[rule.Kind] != nil
		switch rule.Where {
		case kinds.AtChange:
			does = atChanges[rule.Kind] != nil
		case kinds.AtBatch:
			does = rule.Kind == atBatches
		case kinds.AtDeletion:
			does = rule.Kind == kinds.ForeignFinalizer // package run injects it
		case kinds.AtUserWrite:
			does = rule.Kind == kinds.WebhookPassedOver // package run injects it
		}
		assert.True(t, does, "%q does something", rule.Kind)
	}
	assert.Len(t, kinds.Rules, len(atRequests)+len(atChanges)+3, "each kind that does something has a rule")
}
