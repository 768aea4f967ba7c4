package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
)

// newHistoryHarness keeps the last three conditions.
func newHistoryHarness(t *testing.T, step StepFunc[*budget], options ...StepOption) *harness {
	t.Helper()
	h := newHarness(t, interceptor.Funcs{}, Named("one-step", step, options...))
	h.Reconciler.WithHistory(func(b *budget) conditions.List {
		return conditions.Standard().WithClock(h.clock.Now).History(&b.Status.Conditions, 3)
	})
	return h
}

func TestHistory(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		err    error
		want   []condition
	}{
		"success": {reason: "the step tells of that itself"},
		"wait":    {reason: "and of that", err: Wait("Waiting", time.Minute, "for rain")},
		"done":    {reason: "and of that", err: Success("Watered", time.Minute, "it is wet")},
		"failure": {reason: "nobody else can tell", err: boom, want: []condition{{"OneStep", "False", "Failed", "boom"}}},
		"terminal": {
			reason: "nor this", err: Stalled("Wrong", boom), want: []condition{{"OneStep", "False", "Wrong", "boom"}},
		},
		"unshown": {reason: "it is not to be told", err: KeepConditions(boom)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHistoryHarness(t, giving(tc.err))
			for range 3 {
				h.pass(t)
			}
			require.Equal(t, tc.want, conditionsOf(h.status(t)), "%s; and once", tc.reason)
		})
	}
}

func TestHistoryOfOwnEntries(t *testing.T) {
	var fails error
	h := newHistoryHarness(t, func(_ context.Context, _ client.Client, b *budget) error {
		if fails != nil {
			return fails
		}
		_, _, err := conditions.History(&b.Status.Conditions, 3).Set(metav1.Condition{Type: "Lit", Status: "True", Reason: "Dark"})
		return err
	}, Reporting("Reconciled"))
	lit, failed := condition{"Lit", "True", "Dark", ""}, condition{"Reconciled", "False", "Failed", "boom"}
	h.pass(t)
	h.pass(t)
	require.Equal(t, []condition{lit}, conditionsOf(h.status(t)))
	fails = errors.New("boom")
	h.pass(t)
	require.Equal(t, []condition{lit, failed}, conditionsOf(h.status(t)))
	fails = nil
	h.pass(t)
	require.Equal(t, []condition{lit, failed, lit}, conditionsOf(h.status(t)))
	writes := h.writes
	h.annotate(t, "true")
	h.pass(t)
	h.pass(t)
	require.Equal(t, writes+1, h.writes)
	require.Equal(t, []string{"Reconciled", "Lit", conditions.Paused}, typesOf(h), "cut to the limit")
	h.annotate(t, "false")
	h.pass(t)
	require.Equal(t, []string{"Lit", conditions.Paused, "Lit"}, typesOf(h))
	require.NotZero(t, h.status(t).ObservedGeneration)
}

func typesOf(h *harness) (types []string) {
	b := &budget{}
	if err := h.client.Get(context.Background(), request.NamespacedName, b); err != nil {
		panic(err)
	}
	for _, c := range b.Status.Conditions {
		types = append(types, c.Type)
	}
	return types
}

// Two series of one type would make the whole page of metrics an error.
func TestMetricsOfAHistory(t *testing.T) {
	h := newHistoryHarness(t, giving(nil))
	b := newBudget()
	b.Status.Conditions = []metav1.Condition{{Type: "Lit", Status: "True"}, {Type: "Lit", Status: "False"}}
	p := &pass[*budget]{Reconciler: h.Reconciler}
	require.Equal(t, b.Status.Conditions[1:], p.shown(b), "only the newest is so")
}
