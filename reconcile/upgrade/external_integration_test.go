package upgrade_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/upgrade"
)

// accounts returns the step of an operator that keeps accounts in an external API. observed counts the calls of Observe,
// which is the only call that a plan makes.
func accounts(observed *atomic.Int32, quotas map[string]int, observes bool) steps {
	records := map[string]external.Record{ // a PodDisruptionBudget has no field for the record, so it is kept here
		"blue":   {Reference: external.Reference{Key: "blue"}},
		"green":  {Reference: external.Reference{Key: "green"}},
		"orange": {Reference: external.Reference{Key: "orange", Pending: true}},
		"red":    {Reference: external.Reference{Key: "former"}},
	}
	refused := func() error { panic("a plan changes nothing") }
	step := external.New(external.Resource[*budget, int]{
		Record: func(b *budget) *external.Record { r := records[b.Name]; return &r },
		Key:    func(b *budget) string { return b.Name },
		Observe: func(_ context.Context, _ client.Client, _ *budget, ref external.Reference) (int, error) {
			observed.Add(1)
			quota, exists := quotas[ref.Key]
			if !exists {
				return 0, external.ErrNotFound
			}
			return quota, nil
		},
		Desired: func(context.Context, client.Client, *budget) (int, error) { return 2, nil },
		Differs: func(_ external.Reference, observed, desired int) bool { return observed != desired },
		Create: func(context.Context, client.Client, *budget, external.Reference, int) (string, error) {
			return "", refused()
		},
		Update:         func(context.Context, client.Client, *budget, external.Reference, int, int) error { return refused() },
		Delete:         func(context.Context, client.Client, *budget, external.Reference) error { return refused() },
		ObserveInPlans: observes,
	})
	return steps{reconcile.Named("account", step).Finalizer("example.com/account")}
}

func TestPlanOfWhatIsOutside(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"blue", "green", "new", "orange", "red"} {
		e.create(t, newBudget(name))
	}
	quotas := map[string]int{"blue": 1, "green": 2, "former": 2}

	var observed atomic.Int32
	got, err := e.plan(t, t.Context(), "text", accounts(&observed, quotas, false))
	require.ErrorIs(t, err, upgrade.ErrIncomplete, "what became of the account of orange is not known")
	require.Zero(t, observed.Load(), "a plan does not call the API")
	require.Contains(t, got, `PodDisruptionBudget: 2 of 5 change, 2 have something outside of the cluster that the plan did not compare, 1 have a child that fails.
1 × account is deleted, later: it is deleted outside of the cluster, with what it holds
2 × account is created
Of all children, 1 are deleted later. What is not listed stays as it is.
1 × account fails: see below
`)
	require.Contains(t, got, "this waits until red is there")
	require.Contains(t, got, "whether orange was created is not known before it is observed")
	require.Contains(t, got, "  - What is outside of the cluster was not asked: a step with ObserveInPlans asks it")

	got, err = e.plan(t, t.Context(), "text", accounts(&observed, quotas, true))
	require.ErrorIs(t, err, upgrade.ErrChanges)
	require.Equal(t, int32(5), observed.Load(), "each is observed once")
	require.Contains(t, got, `PodDisruptionBudget: 4 of 5 change, 1 are as desired.
1 × account is deleted, later: it is deleted outside of the cluster, with what it holds
1 × account is changed
3 × account is created
Of all children, 1 are deleted later. What is not listed stays as it is.
`)
	require.NotContains(t, got, "was not asked")
	require.Empty(t, e.sent.take(e.namespace), "nothing is written")
}
