package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/internal/step"
)

// settling is a step that can be left out of a pass if it has nothing to do.
type settling struct {
	settled     bool
	asked, runs int
}

func (s *settling) Reconcile(context.Context, client.Client, *budget) error { s.runs++; return nil }

func (s *settling) Hooks() step.Hooks {
	hooks := noHooks()
	hooks.Self = s
	hooks.Settled = func(context.Context, client.Client, client.Object) bool {
		s.asked++
		return s.settled
	}
	return hooks
}

// noHooks returns hooks that do nothing.
func noHooks() step.Hooks {
	return step.Hooks{
		Settled:        func(context.Context, client.Client, client.Object) bool { return false },
		Watch:          func(ctrl.Manager, *ctrl.Builder) error { return nil },
		References:     func() []references.Reference { return nil },
		Served:         func() map[schema.GroupVersionKind]*servedkinds.Watch { return nil },
		ConditionTypes: func() []string { return nil },
	}
}

// wrapped embeds a step and does more in its Reconcile.
type wrapped struct{ *settling }

func TestSettledStepsAreLeftOut(t *testing.T) {
	other := Func(func(context.Context, client.Client, *budget) error { return nil })
	tests := map[string]struct {
		reason  string
		steps   func(first, second *settling) []NamedStep[*budget]
		prepare func(b *budget)
		runs    [2]int // how often each step has run in the second pass
	}{
		"All": {
			reason: "Nothing has to be done.",
			steps: func(first, second *settling) []NamedStep[*budget] {
				return []NamedStep[*budget]{Named("first", first), Named("second", second)}
			},
		},
		"BeforeAnother": {
			reason: "A step may change the object in memory, so what comes after it runs.",
			steps: func(first, second *settling) []NamedStep[*budget] {
				return []NamedStep[*budget]{Named("first", first), Named("other", other), Named("second", second)}
			},
			runs: [2]int{0, 1},
		},
		"Embedded": {
			reason: "What embeds the step may do more.",
			steps: func(first, second *settling) []NamedStep[*budget] {
				return []NamedStep[*budget]{Named("first", wrapped{first}), Named("second", second)}
			},
			runs: [2]int{1, 1},
		},
		"NotSettled": {
			reason: "The first step that is not settled runs, and all after it.",
			steps: func(first, second *settling) []NamedStep[*budget] {
				first.settled = false
				return []NamedStep[*budget]{Named("first", first), Named("second", second)}
			},
			runs: [2]int{1, 1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first, second := &settling{settled: true}, &settling{settled: true}
			steps := tc.steps(first, second)
			h := newHarness(t, interceptor.Funcs{}, steps...)
			h.pass(t) // the first pass writes the status
			h.pass(t)
			first.runs, second.runs, h.writes = 0, 0, 0
			require.Zero(t, h.pass(t))
			require.Equal(t, tc.runs, [2]int{first.runs, second.runs}, tc.reason)
			require.Zero(t, h.writes)
		})
	}
}

// Somebody has changed the status. The next pass writes it again, although all steps are left out.
func TestSettledStepsKeepTheirConditions(t *testing.T) {
	step := &settling{settled: true}
	h := newHarness(t, interceptor.Funcs{}, Named("first", step).Reporting("Works"))
	h.pass(t)
	h.pass(t)
	b := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
	before := b.Status.Conditions
	require.Len(t, before, 2)
	b.Status.Conditions = nil
	require.NoError(t, h.client.Status().Update(t.Context(), b))
	step.runs = 0
	h.pass(t)
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
	require.Len(t, b.Status.Conditions, 2)
	require.Zero(t, step.runs)
}

// A pass has asked for another pass at a certain time. The next pass must ask for that time again, so it is not left
// out.
func TestSettledStepsKeepTheDelay(t *testing.T) {
	step := &settling{settled: true}
	h := newHarness(t, interceptor.Funcs{}, Named("first", step), Named("later", returning(Success("Asleep", time.Minute, "until later"))))
	for range 3 {
		require.NotZero(t, h.pass(t))
	}
}

func TestSettledStepsOfAnObjectThatIsPaused(t *testing.T) {
	step := &settling{settled: true}
	h := newHarness(t, interceptor.Funcs{}, Named("first", step))
	h.pass(t)
	h.pass(t)
	b := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
	b.Annotations = map[string]string{PausedAnnotation: "true"}
	require.NoError(t, h.client.Update(t.Context(), b))
	step.asked = 0
	h.pass(t)
	require.Zero(t, step.asked, "a pause is shown in the conditions")
	require.NotEmpty(t, h.writes)
}
