package scheduledjobs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
)

const (
	clockAdvice        = ". If the clock is right, it was ahead when that was recorded: remove lastScheduleTime and scheduleSince from the status"
	jobNextYear        = "web-30064440" // the run at two o'clock a year later
	behindNextYear     = "the clock is behind lastScheduleTime, 2027-03-01T02:00:00Z: nothing starts until 2027-03-01T03:00:00Z" + clockAdvice
	behindNextYearsJob = behindNextYear + "; first delete Job " + jobNextYear + ", which shows such a time too"
)

// TestClockBehind reconciles at several times. The last of these times is before the others.
func TestClockBehind(t *testing.T) {
	nextYear := two.AddDate(1, 0, 0)
	tests := map[string]struct {
		reason  string
		passes  []time.Time
		edit    func(t *testing.T, h *harness)
		message string
		after   time.Duration
		jobs    []string
	}{
		"AheadForOnePass": {
			reason:  "the run of next year has started, and nothing else will for a year",
			passes:  []time.Time{two, nextYear, two.Add(time.Hour), two.Add(23 * time.Hour)},
			message: behindNextYearsJob, after: 10 * time.Minute, jobs: []string{jobAtTwo, jobNextYear},
		},
		"JobIsGone": {
			reason: "the status alone has the time then",
			passes: []time.Time{two, nextYear, two.Add(time.Hour)},
			edit: func(t *testing.T, h *harness) {
				t.Helper()
				require.NoError(t, h.Delete(t.Context(), h.job(t, jobNextYear)))
			},
			message: behindNextYear, after: 10 * time.Minute, jobs: []string{jobAtTwo},
		},
		"StatusAloneCorrected": {
			reason: "the Job shows that its run was started",
			passes: []time.Time{two, nextYear, two.Add(time.Hour)},
			edit: func(t *testing.T, h *harness) {
				t.Helper()
				h.set(t, func(b *Backup) { b.Status.LastScheduleTime, b.Status.ScheduleSince = nil, nil })
			},
			message: behindNextYearsJob, after: 10 * time.Minute, jobs: []string{jobAtTwo, jobNextYear},
		},
		"SeveralJobs": {
			reason:  "the clock was ahead for hours: each Job would bring its time back",
			passes:  []time.Time{nextYear, nextYear.Add(time.Hour), nextYear.Add(2 * time.Hour), two},
			message: "the clock is behind lastScheduleTime, 2027-03-01T04:00:00Z: nothing starts until 2027-03-01T05:00:00Z" + clockAdvice + "; first delete the Jobs web-30064440, web-30064500, web-30064560, which show such times too",
			after:   10 * time.Minute, jobs: []string{"web-30064440", "web-30064500", "web-30064560"},
		},
		"BehindNow": {
			reason:  "the clock was right when the run was recorded",
			passes:  []time.Time{two, two.Add(-7 * time.Minute)},
			message: "the clock is behind lastScheduleTime, 2026-03-01T02:00:00Z: nothing starts until 2026-03-01T03:00:00Z" + clockAdvice + "; first delete Job " + jobAtTwo + ", which shows such a time too",
			after:   7 * time.Minute, jobs: []string{jobAtTwo},
		},
		"SinceAhead": {
			reason:  "the operator started before its clock was set: half past one, and not yet one",
			passes:  []time.Time{two.Add(-61 * time.Minute)},
			message: "the clock is behind scheduleSince, 2026-03-01T01:30:00Z: nothing starts until 2026-03-01T02:00:00Z" + clockAdvice,
			after:   10 * time.Minute,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, newBackup(func(s *BackupSpec) { s.ConcurrencyPolicy = batchv1.AllowConcurrent }))
			for _, now := range tc.passes {
				_, _ = h.at(t, now)
			}
			if tc.edit != nil {
				tc.edit(t, h)
			}
			b, after := h.pass(t)
			own, _ := conditions.Get(b.Status.Conditions, "Backups")
			for _, c := range []metav1.Condition{ready(b), own} {
				require.Equal(t, []string{"ClockBehind", tc.message}, []string{c.Reason, c.Message}, "%s: %s", c.Type, tc.reason)
				require.Equal(t, metav1.ConditionFalse, c.Status, c.Type)
			}
			require.Equal(t, tc.after, after, "at the latest when the clock has caught up")
			require.Equal(t, tc.jobs, h.jobs(t))
			_, _ = h.pass(t)
			require.Empty(t, h.writes, "the message does not change while nothing else does")
		})
	}
}

// TestClockBehindEnds proves that the condition ClockBehind ends by itself, and that no run is then repeated or lost.
func TestClockBehindEnds(t *testing.T) {
	tests := map[string]struct {
		reason string
		end    func(t *testing.T, h *harness)
		jobs   []string // the Jobs after the next run has started
	}{
		"CaughtUp": {
			reason: "the clock was set back by half an hour, and shows the recorded time again",
			end:    func(t *testing.T, h *harness) { t.Helper(); h.clock.SetTime(two) },
			jobs:   []string{jobAtTwo, jobAtThree},
		},
		"Corrected": {
			reason: "the clock was a year ahead, and somebody has done what the message says: the run at two is not due again",
			end: func(t *testing.T, h *harness) {
				t.Helper()
				_, _ = h.at(t, two.AddDate(1, 0, 0))
				_, _ = h.at(t, two.Add(30*time.Minute))
				require.NoError(t, h.Delete(t.Context(), h.job(t, jobNextYear)))
				h.set(t, func(b *Backup) { b.Status.LastScheduleTime, b.Status.ScheduleSince = nil, nil })
			},
			jobs: []string{jobAtTwo, jobAtThree},
		},
		"Suspended": {
			reason: "then nothing starts anyway; the time stays recorded",
			end: func(t *testing.T, h *harness) {
				t.Helper()
				h.set(t, func(b *Backup) { b.Spec.Suspend = true })
				_, _ = h.pass(t)
				h.clock.SetTime(two)
				h.set(t, func(b *Backup) { b.Spec.Suspend = false })
			},
			jobs: []string{jobAtTwo, jobAtThree},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, newBackup(func(s *BackupSpec) { s.ConcurrencyPolicy = batchv1.AllowConcurrent }))
			_, _ = h.at(t, two)
			b, _ := h.at(t, two.Add(-30*time.Minute))
			require.Equal(t, "ClockBehind", ready(b).Reason)
			tc.end(t, h)
			b, _ = h.pass(t)
			require.Equal(t, []string{"Succeeded", ""}, []string{ready(b).Reason, ready(b).Message}, tc.reason)
			before, missed := len(h.jobs(t)), b.Status.MissedRuns
			b, _ = h.at(t, b.Status.NextScheduleTime.Time)
			require.Equal(t, tc.jobs, h.jobs(t), tc.reason)
			require.Len(t, tc.jobs, before+1, "one more")
			require.Equal(t, missed, b.Status.MissedRuns, "no run is lost")
		})
	}
}

// TestClockBehindHeldJob: the clock was ahead when a run was recorded, and the operator ended before it started the Job. The Job is
// suspended until its run is due, and is not taken for a run in the future.
func TestClockBehindHeldJob(t *testing.T) {
	h := newHarness(t, newBackup())
	h.fail = func(obj client.Object) error {
		if _, isJob := obj.(*batchv1.Job); isJob && len(h.writes) == 2 {
			return errors.New("the operator is gone")
		}
		return nil
	}
	_, _ = h.at(t, two)
	h.fail = func(client.Object) error { return nil }
	h.restart()

	b, after := h.at(t, two.Add(-5*time.Minute))
	require.Equal(t, "the clock is behind lastScheduleTime, 2026-03-01T02:00:00Z: nothing starts until 2026-03-01T02:00:00Z"+clockAdvice, ready(b).Message)
	require.Equal(t, 5*time.Minute-time.Second, after)
	require.True(t, *h.job(t, jobAtTwo).Spec.Suspend)

	_, _ = h.at(t, two)
	require.Equal(t, []string{jobAtTwo}, h.jobs(t))
	require.False(t, *h.job(t, jobAtTwo).Spec.Suspend, "it starts, once")
}
