package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

var errDatabaseDown = errors.New("the database is down")

func labelled(value string) func(*budget) bool {
	return func(b *budget) bool { return b.Labels["target"] == value }
}

func TestOthersObjectsAreLeftAlone(t *testing.T) {
	runs := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", StepFunc[*budget](func(context.Context, client.Client, *budget) error {
		runs++
		return nil
	})))
	h.WithFilter(labelled("ours"))
	require.Zero(t, h.pass(t))
	require.Zero(t, runs, "whatever brings the pass")
	require.Zero(t, h.writes)

	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	b.Labels = map[string]string{"target": "ours"}
	require.NoError(t, h.client.Update(t.Context(), &b))
	h.pass(t)
	require.Equal(t, 1, runs)
	require.Equal(t, 1, h.writes)
}

func TestEventsOfOnly(t *testing.T) {
	b := (&Builder[*budget]{reconciler: &Reconciler[*budget]{}}).WithFilter(labelled("ours"))
	filter := predicate.And(b.predicates...)
	ours, theirs := newBudget(), newBudget()
	ours.Labels = map[string]string{"target": "ours"}
	for name, tc := range map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"created, ours":   {"", filter.Create(event.CreateEvent{Object: ours}), true},
		"created, theirs": {"", filter.Create(event.CreateEvent{Object: theirs}), false},
		"joins":           {"it has become ours", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: ours}), true},
		"leaves":          {"its leaving must be noticed", filter.Update(event.UpdateEvent{ObjectOld: ours, ObjectNew: theirs}), true},
		"never ours":      {"", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: theirs}), false},
		"deleted, theirs": {"its last state is not certain, and what is remembered has to go", filter.Delete(event.DeleteEvent{Object: theirs}), true},
		"generic":         {"", filter.Generic(event.GenericEvent{Object: theirs}), false},
	} {
		require.Equal(t, tc.want, tc.got, "%s: %s", name, tc.reason)
	}
}

func TestDoneInOnesOwnWords(t *testing.T) {
	words := Success("ProvisionSucceeded", 10*time.Minute, "The user is there.")
	tests := map[string]struct {
		reason string
		steps  []NamedStep[*budget]
		want   []condition
		again  bool
	}{
		"alone": {
			reason: "the words are Ready's, and the step's own condition's",
			steps:  []NamedStep[*budget]{Named("one", giving(words), Reporting("Provisioned"))},
			want: []condition{
				{"Provisioned", "True", "ProvisionSucceeded", "The user is there."}, {"Ready", "True", "ProvisionSucceeded", "The user is there."},
			},
			again: true,
		},
		"beside a plain success": {
			reason: "which has no words",
			steps:  []NamedStep[*budget]{Named("one", giving(words)), Named("two", giving(nil))},
			want:   []condition{{"Ready", "True", "ProvisionSucceeded", "The user is there."}},
			again:  true,
		},
		"beside a wait": {
			reason: "what is not done says more",
			steps:  []NamedStep[*budget]{Named("one", giving(words)), Named("two", giving(Wait("Slow", 0, "slow")))},
			want:   []condition{{"Ready", "False", "Slow", "slow"}, {"Reconciling", "True", "Slow", "slow"}},
			again:  true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{}, tc.steps...)
			result := h.pass(t)
			require.Equal(t, tc.want, conditionsOf(h.status(t)), tc.reason)
			require.Equal(t, tc.again, result.RequeueAfter >= 10*time.Minute && result.RequeueAfter <= 11*time.Minute, "%v", result)
		})
	}
}

func TestUnshown(t *testing.T) {
	var say error
	h := newHarness(t, interceptor.Funcs{}, Named("one", StepFunc[*budget](func(context.Context, client.Client, *budget) error { return say })))
	say = Wait("ByOther", 0, "another operator works on it")
	h.pass(t)
	before := h.status(t)
	for _, err := range []error{KeepConditions(nil), KeepConditions(Wait("Mine", 0, "mine")), KeepConditions(errDatabaseDown)} {
		say = err
		result := h.pass(t)
		require.Equal(t, before, h.status(t), "the words stay")
		require.Equal(t, err.Error() == errDatabaseDown.Error(), result != ctrl.Result{}, "an error is retried: %v", result)
	}
}
