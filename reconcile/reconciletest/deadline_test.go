package reconciletest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// In a scenario with one action, the first process belongs to the run without faults. The next three belong to the
// other runs without faults. All later ones belong to runs with faults.
func TestDeadlineEndsRuns(t *testing.T) {
	tests := map[string]struct {
		reason  string
		process int64 // the process in whose first pass the deadline comes
		runs    int   // the expected number of runs; -1: any number
		late    bool
		says    string
	}{
		"Baseline": {reason: "the very first run takes too long", process: 1, says: `the run without faults was not finished: it was at action 1 of 1, "create Shop default/web"`},
		"Reference": {
			reason: "without all references nothing can be judged", process: 3, runs: 1,
			says: "one of the runs without faults, with which the others are compared, was not finished: it was at",
		},
		"Fault": {reason: "a run with a fault has begun", process: 5, runs: -1, late: true, says: `the run with "`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stop, processes := make(chan struct{}), atomic.Int64{}
			s := of(func(*reconciletest.Process) shopFunc {
				number, once := processes.Add(1), sync.Once{}
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if number == tc.process {
						once.Do(func() { close(stop) })
					}
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			}, reconciletest.Create(shop()))
			report := reconciletest.ExploreUntil(t, s, time.Time{}, stop, nil)
			assert.Equal(t, tc.late, report.Unfinished == nil, tc.reason)
			assert.Contains(t, report.String(), tc.says, tc.reason)
			assert.Contains(t, report.String(), "set a longer one with go test -timeout")
			assert.Empty(t, report.Failures)
			assert.Equal(t, tc.late, report.Late > 0)
			if tc.runs >= 0 {
				assert.Equal(t, tc.runs, report.Runs)
				assert.NotContains(t, report.String(), "survived", "nothing was tried yet")
			}
		})
	}
}

// A pass that does not return cannot be ended. The report says where it hangs.
func TestDeadlineLeavesHangingRunsBehind(t *testing.T) {
	hang, abandon, before := make(chan struct{}), make(chan struct{}), bubbleGoroutines()
	t.Run("Explore", func(t *testing.T) {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				close(abandon)
				<-hang // it waits for something outside of the bubble
				return ctrl.Result{}, nil
			}
		}, reconciletest.Create(shop()))
		report := reconciletest.ExploreUntil(t, s, time.Time{}, abandon, abandon)
		require.ErrorContains(t, report.Unfinished, "the run without faults was not finished: a pass does not return; it hangs here:\n")
		require.ErrorContains(t, report.Unfinished, "deadline_test.go")
		assert.Zero(t, report.Runs)
	})
	close(hang)
	waitForBubbles(before) // the run may end after this test, which harms nothing
}

func TestEndRuns(t *testing.T) {
	start := time.Now()
	runs, release := reconciletest.EndRuns(start, time.Time{})
	release()
	assert.Nil(t, runs.Stop, "there is no deadline")
	assert.Nil(t, runs.Abandon)

	runs, release = reconciletest.EndRuns(start, start.Add(-time.Second))
	defer release()
	<-runs.Stop
	<-runs.Abandon

	runs, release = reconciletest.EndRuns(start, start.Add(time.Hour))
	release()
	select {
	case <-runs.Stop:
		t.Error("the deadline is far away")
	default:
	}
}
