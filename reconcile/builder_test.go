package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func labelled(value string) func(*budget) bool {
	return func(b *budget) bool { return b.Labels["target"] == value }
}

func TestWithFilter(t *testing.T) {
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

func TestWithFilterEvents(t *testing.T) {
	filter := (&Reconciler[*budget]{}).WithFilter(labelled("ours")).filterEvents()
	ours, theirs := newBudget(), newBudget()
	ours.Labels = map[string]string{"target": "ours"}
	for name, tc := range map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"CreatedOurs":   {"", filter.Create(event.CreateEvent{Object: ours}), true},
		"CreatedTheirs": {"", filter.Create(event.CreateEvent{Object: theirs}), false},
		"Joins":         {"it has become ours", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: ours}), true},
		"Leaves":        {"its leaving must be noticed", filter.Update(event.UpdateEvent{ObjectOld: ours, ObjectNew: theirs}), true},
		"NeverOurs":     {"", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: theirs}), false},
		"DeletedTheirs": {"its last state is not certain, and what is remembered has to go", filter.Delete(event.DeleteEvent{Object: theirs}), true},
		"Generic":       {"", filter.Generic(event.GenericEvent{Object: theirs}), false},
	} {
		require.Equal(t, tc.want, tc.got, "%s: %s", name, tc.reason)
	}
}
