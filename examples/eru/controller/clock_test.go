package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
)

const (
	behindNextYear = "the clock is behind lastScheduleTime, 2027-03-02T04:00:00Z: nothing starts until 2027-03-03T04:00:00Z. " + clockAdvice
	clockAdvice    = "If the clock is right, it was ahead when that was recorded: remove lastScheduleTime and scheduleSince from the status"
)

// TestClockBehind has passes at several times. At the last one the clock may be behind. The schedule is four o'clock each day.
func TestClockBehind(t *testing.T) {
	nextYear := four.AddDate(1, 0, 0)
	tests := map[string]struct {
		reason  string
		passes  []time.Time
		edit    func(t *testing.T, h *harness)
		want    string
		message string
		after   time.Duration
	}{
		"ahead for one pass": {
			reason: "nothing restarts for a year",
			passes: []time.Time{noon, nextYear, noon, four, four.Add(time.Hour), four.Add(48 * time.Hour)},
			want:   "Running: Scheduled false ClockBehind", message: behindNextYear, after: 10 * time.Minute,
		},
		"behind": {
			reason: "the clock was right when the restart was recorded",
			passes: []time.Time{noon, four, four.Add(-3 * time.Minute)},
			want:   "Running: Scheduled false ClockBehind", after: 3 * time.Minute,
			message: "the clock is behind lastScheduleTime, 2026-03-02T04:00:00Z: nothing starts until 2026-03-03T04:00:00Z. " + clockAdvice,
		},
		"enabled ahead": {
			reason: "the operator started before its clock was set",
			passes: []time.Time{four, noon},
			want:   "Running: Scheduled false ClockBehind", after: 10 * time.Minute,
			message: "the clock is behind scheduleSince, 2026-03-02T04:00:00Z: nothing starts until 2026-03-03T04:00:00Z. " + clockAdvice,
		},
		"caught up": {
			reason: "it ends at the recorded time, and the restart is not repeated",
			passes: []time.Time{noon, four, four.Add(-time.Hour), four},
			want:   "Running: Scheduled true Scheduled", message: `"0 4 * * *" in UTC`, after: 10 * time.Minute,
		},
		"caught up when a restart is due": {
			reason: "the operator was down in between; the rollout ends in the next pass",
			passes: []time.Time{noon, four, four.Add(-time.Hour), four.Add(24 * time.Hour)},
			want:   "Running: Scheduled true Scheduled", message: `"0 4 * * *" in UTC`, after: time.Minute,
		},
		"caught up too late": {
			reason: "the operator was down in between",
			passes: []time.Time{noon, four, four.Add(-time.Hour), four.Add(26 * time.Hour)},
			edit: func(t *testing.T, h *harness) {
				t.Helper()
				h.set(t, "web", func(s *eruv1.EruSpec) { s.StartingDeadlineSeconds = new(int64(60)) })
			},
			want: "Running: Restarted false SkippedTooLate", message: "2026-03-03T04:00:00Z: its starting deadline has passed", after: 10 * time.Minute,
		},
		"corrected": {
			reason: "somebody has done what the message says",
			passes: []time.Time{noon, four, nextYear, four.Add(time.Hour), four.Add(time.Hour)},
			edit: func(t *testing.T, h *harness) {
				t.Helper()
				h.forge(t, "web", func(s *eruv1.EruStatus) { s.LastScheduleTime, s.ScheduleSince = nil, nil })
			},
			want: "Running: Scheduled true Scheduled", message: `"0 4 * * *" in UTC`, after: 10 * time.Minute,
		},
		"disabled": {
			reason: "then nothing restarts anyway",
			passes: []time.Time{noon, nextYear, four, four},
			edit: func(t *testing.T, h *harness) {
				t.Helper()
				h.set(t, "web", func(s *eruv1.EruSpec) { s.Enabled = false })
			},
			want: "Stoping: Stopped true Disabled", message: "spec.enabled is false",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 0, newDeployment("web", nil), newEru("web", daily))
			last := len(tc.passes) - 1
			for _, now := range tc.passes[:last] {
				h.at(t, now, "web")
				h.pass(t, "web") // which observes the end of the rollout
			}
			if tc.edit != nil {
				tc.edit(t, h)
			}
			eru := h.at(t, tc.passes[last], "web")
			assert.Equal(t, tc.want, state(eru), tc.reason)
			assert.Equal(t, tc.message, eru.LastCondition().Message)
			assert.Equal(t, tc.after, h.after, "at the latest when the clock has caught up")

			h.pass(t, "web")
			eru = h.pass(t, "web")
			assert.Zero(t, h.writes, "it is recorded once")
			said := 0
			for _, c := range eru.Status.Conditions {
				said += strings.Count(c.Reason, eruv1.ReasonClockBehind)
			}
			assert.LessOrEqual(t, said, 1, "and once in the history")
		})
	}
}

// TestClockBehindCorrected follows the advice of the message: what has run does not run again, and the next restart comes.
func TestClockBehindCorrected(t *testing.T) {
	h := newHarness(t, 0, newDeployment("web", nil), newEru("web", daily))
	for _, now := range []time.Time{noon, four, four.AddDate(1, 0, 0), four.Add(time.Hour)} {
		h.at(t, now, "web")
		h.pass(t, "web")
	}
	require.Equal(t, "2027-03-02T04:00:00Z", h.restartedAt(t, "web"))
	h.forge(t, "web", func(s *eruv1.EruStatus) { s.LastScheduleTime, s.ScheduleSince = nil, nil })
	h.at(t, four.Add(2*time.Hour), "web")
	require.Equal(t, "2027-03-02T04:00:00Z", h.restartedAt(t, "web"), "the restart of today is not repeated")
	h.at(t, four.Add(24*time.Hour), "web")
	require.Equal(t, "2026-03-03T04:00:00Z", h.restartedAt(t, "web"))
}

// TestRolloutAfterClockWasAhead has a restart that was recorded a year ahead, and a rollout that does not end. It is observed for an
// hour from the first pass with the right clock: longer, it would keep others waiting for a year.
func TestRolloutAfterClockWasAhead(t *testing.T) {
	tests := map[string]struct {
		reason string
		later  time.Duration
		want   string
	}{
		"at first": {"it may end", 0, "InProgress"},
		"an hour":  {"it may still end", time.Hour, "InProgress"},
		"longer":   {"without a progress deadline it may never end", time.Hour + time.Second, "Unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 1, newDeployment("web", nil), newEru("web", daily))
			h.pass(t, "web")
			h.at(t, four.AddDate(1, 0, 0), "web")
			h.edit(t, "web", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 })
			eru := h.at(t, noon, "web")
			require.True(t, eru.Status.LastRestartTime.Time.Equal(noon), "a restart has not started in the future")
			eru = h.at(t, noon.Add(tc.later), "web")
			assert.Equal(t, tc.want, eru.Status.LastRolloutResult, tc.reason)
			assert.Equal(t, "Running: Scheduled false ClockBehind", state(eru))
			h.pass(t, "web")
			assert.Zero(t, h.writes)
		})
	}
}
