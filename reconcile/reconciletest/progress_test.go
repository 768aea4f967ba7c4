package reconciletest_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func TestLimit(t *testing.T) {
	some := func(seed uint64) *reconciletest.Report {
		return reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Limit: 30, Seed: seed}))
	}
	report := some(7)
	require.Empty(t, report.Failures)
	assert.Equal(t, 31, report.Runs, "without faults, and 30 with one")
	assert.Greater(t, report.Singles, 50)
	assert.EqualValues(t, 7, report.Seed)
	assert.Zero(t, report.Late)
	assert.Contains(t, report.String(), "survived 30 of ")
	assert.Contains(t, report.String(), " (seed 7)")
	assert.Equal(t, report.Survived, some(7).Survived, "a seed chooses the same sample again")

	all := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Limit: 100_000}))
	assert.Equal(t, report.Singles, all.Singles)
	assert.Equal(t, all.Singles+1, all.Runs)
	assert.Zero(t, all.Seed, "nothing is sampled")
	for kind := range all.Survived {
		assert.Positive(t, report.Survived[kind], "the sample has every kind: %s", kind)
	}
}

func TestLimitFindsFailures(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, with(faultyEffects["EffectForADeletedObject"].scenario(false), reconciletest.Options{Limit: 60}))
	assert.NotEmpty(t, report.Failures, "a sample that has every kind of fault finds this one")
}

func TestBudget(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Budget: time.Nanosecond}))
	require.Empty(t, report.Failures)
	require.NoError(t, report.Unfinished, "the author asked for it")
	assert.Equal(t, 1, report.Runs, "no run with a fault begins")
	assert.Equal(t, report.Singles, report.Late)
	assert.EqualValues(t, 1, report.Seed)
	assert.Contains(t, report.String(), "survived 0 of ")
	assert.Contains(t, report.String(), "left out, since the budget of 1ns was used up")

	report = reconciletest.ExploreQuietly(t, with(twoFaults(), reconciletest.Options{Budget: time.Hour}))
	assert.Equal(t, report.Singles+1, report.Runs, "there is time for all runs")
	assert.NotContains(t, report.String(), "left out")
}

func TestEndOf(t *testing.T) {
	start := time.Date(2030, time.January, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason   string
		budget   time.Duration // 0: none
		deadline time.Duration // after start; 0: no deadline
		want     time.Duration // after start; 0: no end
		cut      bool          // the deadline is the reason
	}{
		"NoLimit":           {reason: "nothing limits the exploration"},
		"Budget":            {reason: "the budget counts from the start", budget: 30 * time.Second, want: 30 * time.Second},
		"BudgetFirst":       {reason: "the deadline is far away", budget: 30 * time.Second, deadline: time.Hour, want: 30 * time.Second},
		"DeadlineFirst":     {reason: "a tenth of the time is for the report", budget: time.Hour, deadline: time.Minute, want: 54 * time.Second, cut: true},
		"Deadline":          {reason: "there is a deadline without a budget too", deadline: time.Minute, want: 54 * time.Second, cut: true},
		"DistantDeadline":   {reason: "the margin is half a minute at most", deadline: time.Hour, want: time.Hour - 30*time.Second, cut: true},
		"HugeBudget":        {reason: "no sum overflows", budget: math.MaxInt64, deadline: time.Minute, want: 54 * time.Second, cut: true},
		"DeadlineVeryClose": {reason: "the margin is a second at least", deadline: 2 * time.Second, want: time.Second, cut: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var deadline, want time.Time
			if tc.deadline > 0 {
				deadline = start.Add(tc.deadline)
			}
			if tc.want > 0 {
				want = start.Add(tc.want)
			}
			end, reason := reconciletest.EndOf(start, tc.budget, deadline)
			assert.Equal(t, want, end, tc.reason)
			assert.Equal(t, tc.cut, reason != nil, tc.reason)
		})
	}
}

func TestPace(t *testing.T) {
	assert.Equal(t, "25 a second", reconciletest.Pace(201, 8100*time.Millisecond))
	assert.Equal(t, "1 a second", reconciletest.Pace(1, time.Second))
	assert.Equal(t, "3s each", reconciletest.Pace(101, 303*time.Second), "a number of runs a second would be 0")
	assert.Equal(t, "1.5s each", reconciletest.Pace(2, 3*time.Second))
}

// A deadline that has almost come leaves out runs with faults. The report says so.
func TestReportLate(t *testing.T) {
	report := reconciletest.ExploreUntil(t, twoFaults(), time.Now().Add(time.Second), nil, nil)
	require.NoError(t, report.Unfinished)
	assert.Equal(t, 1, report.Runs)
	assert.Contains(t, report.String(), fmt.Sprintf("\n%d runs left out: ", report.Singles))
	assert.Contains(t, report.String(), "set a longer one with go test -timeout, or explore a sample with Limit or Budget")
}
