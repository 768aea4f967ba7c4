package run

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// Runs with faults repeat the random values of the run without faults. Other runs have their own.
func TestRunRepeatsRandomValues(t *testing.T) {
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	s := &Scenario{Scheme: scheme.Scheme}
	values := func(r *Run) [2]string {
		var all [2]string
		for i := range all {
			random := make([]byte, 16)
			r.World.ReadRandom(random)
			all[i] = string(random)
		}
		return all
	}
	baseline := newRun(s, server, nil, nil)
	refs := &result.References{Baseline: &result.Result{Seed: baseline.World.Seed}}
	want := values(baseline)
	require.NotEqual(t, want[0], want[1], "no value comes twice in a run")
	require.Equal(t, want, values(newRun(s, server, []plan.Fault{{Kind: kinds.CrashAfter}}, refs)))
	require.NotEqual(t, want, values(newRun(s, server, nil, nil)), "what depends on chance must differ in the second run without faults")
}
