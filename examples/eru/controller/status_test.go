package controller_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/schedule"
)

// TestMissedRunsDoNotOverflow records missed due times when somebody has written the largest number to the status.
func TestMissedRunsDoNotOverflow(t *testing.T) {
	tests := map[string]struct {
		reason string
		forged int64
		want   int64
	}{
		"largest": {"it would become negative", math.MaxInt64, 1 << 53},
		"nearly":  {"the sum must be a number that the patch can hold", 1<<53 - 2, 1 << 53},
		"usual":   {"they are counted", 4, 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for verdict, late := range map[schedule.Verdict]time.Duration{schedule.Start: 72 * time.Hour, schedule.TooLate: 49 * time.Hour} {
				eru := newEru("web", daily)
				if verdict == schedule.TooLate { // the last due time is missed too
					eru.Spec.StartingDeadlineSeconds = new(int64(1))
				}
				h := newHarness(t, 0, newDeployment("web", nil), eru)
				h.pass(t, "web")
				h.forge(t, "web", func(status *eruv1.EruStatus) { status.MissedRuns = tc.forged })
				eru = h.at(t, four.Add(late), "web")
				assert.Equal(t, tc.want, eru.Status.MissedRuns, "%s: %s", verdict, tc.reason)
				require.NotNil(t, eru.Status.LastScheduleTime, "%s: the API server accepts the status", verdict)
			}
		})
	}
}
