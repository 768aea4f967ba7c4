package external_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TestUnsetFieldsComeToRest leaves the quota unset, so the API chooses a value. The step does not update it again and
// again.
func TestUnsetFieldsComeToRest(t *testing.T) {
	const chosen = 5
	shown := 0
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.Differs = func(_ external.Reference, observed, desired entry) bool {
			return desired.Quota != 0 && observed.Quota != desired.Quota
		}
		r.Observed = func(_ *Account, state entry) { shown = state.Quota }
		create := r.Create
		r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
			desired.Quota = cmp.Or(desired.Quota, chosen)
			return create(ctx, c, a, ref, desired)
		}
	})
	e.object.Spec.Quota = 0
	require.NoError(t, e.Update(t.Context(), e.object))
	for _, step := range []struct {
		reason string
		do     func()
		calls  []string
		quota  int
	}{
		{"the API chooses", func() {}, []string{"get alice", "create alice", "get alice"}, chosen},
		{"nothing has changed", func() {}, nil, chosen},
		{"what the API chose is not compared", func() { e.clock.SetTime(e.clock.Now().Add(time.Hour)) }, []string{"get alice"}, chosen},
		{"a restart changes nothing", e.restart, []string{"get alice"}, chosen},
		{"the object sets it", func() { e.edit(func(a *Account) { a.Spec.Quota = 2 }) }, []string{"get alice", "update alice", "get alice"}, 2},
		{"nobody knows any more what the API chose", func() { e.edit(func(a *Account) { a.Spec.Quota = 0 }) }, []string{"get alice"}, 2},
		{"it comes to rest", func() {}, nil, 2},
	} {
		step.do()
		calls, reason, _ := e.pass()
		require.Equal(t, step.calls, calls, step.reason)
		require.Equal(t, "Succeeded", reason, step.reason)
		require.Equal(t, step.quota, e.api.entries["alice"].Quota, step.reason)
		require.Equal(t, step.quota, shown, "the status shows it")
	}
	require.Zero(t, e.object.Spec.Quota, "the spec is its author's")
}
