package reconciletest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// What a scenario lacks is said in one sentence.
func TestValidate(t *testing.T) {
	action := func(a reconciletest.Action) func(s *reconciletest.Scenario) {
		return func(s *reconciletest.Scenario) { s.Actions = append(s.Actions, a) }
	}
	var none *Shop
	tests := map[string]struct {
		edit    func(s *reconciletest.Scenario)
		options []reconciletest.Option
		says    string
	}{
		"no actions":      {edit: func(s *reconciletest.Scenario) { s.Actions = nil }, says: "the scenario has no Actions"},
		"no scheme":       {edit: func(s *reconciletest.Scenario) { s.Scheme = nil }, says: "the scenario has no Scheme"},
		"no start":        {edit: func(s *reconciletest.Scenario) { s.Start = nil }, says: "the scenario has no Start"},
		"nil object":      {edit: func(s *reconciletest.Scenario) { s.Objects = []client.Object{none} }, says: "Objects[0] is nil"},
		"zero action":     {edit: action(reconciletest.Action{}), says: `Actions[2]: the action "" does nothing`},
		"create nil":      {edit: action(reconciletest.Create(nil)), says: "Actions[2]: Create(nil)"},
		"nil pointer":     {edit: action(reconciletest.Create(none)), says: "Actions[2]: Create(nil)"},
		"change nil":      {edit: action(reconciletest.Change(none, func(*Shop) {})), says: "Actions[2]: Change with nil"},
		"change by nil":   {edit: action(reconciletest.Change(shop(), nil)), says: "Actions[2]: Change with nil"},
		"delete nil":      {edit: action(reconciletest.Delete(nil)), says: "Actions[2]: Delete(nil)"},
		"do nil":          {edit: action(reconciletest.Do("nothing", nil)), says: `Actions[2]: the action "nothing" does nothing`},
		"back in time":    {edit: action(reconciletest.Wait(-time.Second)), says: "Actions[2]: Wait(-1s)"},
		"depth too small": {options: []reconciletest.Option{reconciletest.Depth(0)}, says: "Depth(0): give it 1 or 2"},
		"depth too great": {options: []reconciletest.Option{reconciletest.Depth(3)}, says: "Depth(3): give it 1 or 2"},
		"no limit":        {options: []reconciletest.Option{reconciletest.Limit(-1)}, says: "Limit(-1): give it 1 or more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoFaults()
			if tc.edit != nil {
				tc.edit(&s)
			}
			report := reconciletest.ExploreQuietly(t, s, tc.options...)
			require.Len(t, report.Failures, 1)
			assert.Contains(t, report.String(), "The scenario could not be run.\n\n")
			assert.Contains(t, report.String(), tc.says)
			assert.Zero(t, report.Runs)
		})
	}
}
