//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestPairs(t *testing.T) {
	assert.Empty(t, reconciletest.ExploreQuietly(t, twoFaults()).Failures, "one fault is not enough")

	report := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Pairs: 100_000}))
	require.NotEmpty(t, report.Failures)
	assert.Len(t, report.Failures[0].Faults, 2)
	assert.Contains(t, report.String(), "connection refused at: effect drop account web #1; connection refused at: effect drop account web #2")
}

func TestSeed(t *testing.T) {
	some := func(seed uint64) *reconciletest.Report {
		return reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Pairs: 20, Seed: seed}))
	}
	one, again := some(7), some(7)
	assert.Equal(t, one.Runs, again.Runs)
	assert.Equal(t, one.Pairs, again.Pairs)
	assert.Equal(t, one.Survived, again.Survived, "a seed chooses the same sample again")
	assert.Equal(t, len(one.Failures), len(again.Failures))
	assert.EqualValues(t, 7, one.Seed)
}

func TestReplay(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Replay: "crash after: effect drop account web #1"}))
	assert.Empty(t, report.Failures)
	assert.Equal(t, 2, report.Runs, "without faults, and with these")
	assert.Contains(t, report.String(), "it is done, and the process dies before it gets the answer")
	assert.Contains(t, report.String(), "process 2 starts")

	for name, fault := range map[string]string{
		"RequestOfAUser": "crash after: create Shop default/web #1",
		"NoNextAction":   "crash with downtime after: effect drop account web #1",
	} {
		report = reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Replay: fault}))
		assert.Contains(t, report.String(), "replay: 1 of 1 fault did not happen", name)
	}

	report = reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Replay: "nonsense"}))
	assert.NotEmpty(t, report.Failures)
}

func TestReplayVariable(t *testing.T) {
	t.Setenv("RECONCILETEST_REPLAY", "crash before: update Shop default/web #1")
	assert.Equal(t, 2, reconciletest.ExploreQuietly(t, twoFaults()).Runs)
}

func TestSkipFaults(t *testing.T) {
	s := faultyEffects["EffectForADeletedObject"].scenario(false)
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.TimeTravel}}))
	assert.False(t, hasFault(report, reconciletest.Faults.TimeTravel))
	assert.Equal(t, []reconciletest.FaultKind{reconciletest.Faults.TimeTravel}, report.Skipped)

	sound := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, reconciletest.Create(shop()))
	assert.Contains(t, reconciletest.ExploreQuietly(t, with(sound, reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.TimeTravel}})).String(), `skipped: ["time travel to before"]`)
}

// Without faults an exploration is a quick check of the scenario, which also finds what needs no fault.
func TestWithoutFaults(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{WithoutFaults: true}))
	require.Empty(t, report.Failures)
	assert.Equal(t, 1, report.Runs)
	assert.Greater(t, report.Singles, 50, "faults that were not tried")
	assert.Zero(t, report.Late)
	assert.NotEmpty(t, report.Rights)
	assert.Contains(t, report.String(), "works without faults: none of ")
	assert.NotContains(t, report.String(), "survived")
}
