package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// TestStatusDecide follows an object through reconciles, downtime and changes of its spec.
func TestStatusDecide(t *testing.T) {
	var s schedule.Status
	daily, options := "0 4 * * *", schedule.Options{StartingDeadlineSeconds: new(int64(3600))}
	decide := func(now string) schedule.Decision {
		t.Helper()
		d, err := s.Decide(utc(t, now), "uid", daily, options)
		require.NoError(t, err)
		return d
	}
	next := func(want string) {
		t.Helper()
		require.Equal(t, utc(t, want), s.NextScheduleTime.UTC())
	}

	require.Equal(t, schedule.Waiting, decide("2026-03-01 12:00").Verdict)
	require.Equal(t, utc(t, "2026-03-01 12:00"), s.ScheduleSince.UTC(), "the schedule is in effect since it was first seen")
	next("2026-03-02 04:00")

	d := decide("2026-03-02 04:00")
	require.Equal(t, schedule.Start, d.Verdict)
	next("2026-03-02 04:00") // until the run is recorded, other objects see this one as a waiting candidate
	require.Equal(t, d, decide("2026-03-02 04:00"), "after a crash before it was recorded, the decision is the same")
	s.Record(d)
	next("2026-03-03 04:00")
	require.Equal(t, schedule.Waiting, decide("2026-03-02 04:00").Verdict)

	d = decide("2026-03-05 06:00")
	require.Equal(t, schedule.TooLate, d.Verdict)
	s.Record(d)
	require.EqualValues(t, 3, s.MissedRuns)
	next("2026-03-06 04:00")

	s.MissedRuns = math.MaxInt64
	s.Record(d)
	require.EqualValues(t, 1<<53, s.MissedRuns, "a number that somebody wrote does not overflow")

	since := s.ScheduleSince
	options.StartingDeadlineSeconds, options.SpreadSeconds = nil, 60
	decide("2026-03-05 07:00")
	require.Equal(t, since, s.ScheduleSince, "a change of deadline or spread is not a new schedule")

	for name, change := range map[string]func(){
		"schedule": func() { daily = "0 5 * * *" },
		"zone":     func() { options.TimeZone = "Europe/Berlin" },
		"blackout": func() { options.BlackoutWindows = []schedule.BlackoutWindow{{Start: "08:00", End: "09:00"}} },
	} {
		before := s.ScheduleSince.Time
		change()
		now := before.Add(100 * 24 * time.Hour)
		d, err := s.Decide(now, "uid", daily, options)
		require.NoError(t, err)
		require.Equal(t, schedule.Waiting, d.Verdict, "%s: a change starts no run for the past", name)
		require.True(t, s.ScheduleSince.Time.Equal(now), name)
	}

	daily = "0 0 30 2 *"
	_, err := s.Decide(utc(t, "2028-04-01 00:00"), "uid", daily, options)
	require.ErrorAs(t, err, new(*schedule.Error))
	require.Nil(t, s.NextScheduleTime, "an invalid schedule has no next time")
	require.Nil(t, s.ScheduleSince, "a corrected schedule takes effect anew")
}

// During a blackout window, NextScheduleTime is the end of the window, without the offset of the object.
func TestStatusDecideBlackoutWindow(t *testing.T) {
	var s schedule.Status
	options := schedule.Options{BlackoutWindows: []schedule.BlackoutWindow{{Start: "03:00", End: "06:00"}}, SpreadSeconds: 600}
	for _, now := range []string{"2026-03-01 12:00", "2026-03-02 04:30", "2026-03-02 06:00"} {
		_, err := s.Decide(utc(t, now), "a", "0 4 * * *", options)
		require.NoError(t, err)
		require.Equal(t, utc(t, "2026-03-02 06:00"), s.NextScheduleTime.UTC(), now)
	}
}

// A run that may start makes the object a candidate, even if NextScheduleTime is later. It can be later after a change of the
// deadline.
func TestStatusDecideBeforeNextScheduleTime(t *testing.T) {
	var s schedule.Status
	_, err := s.Decide(utc(t, "2026-03-01 12:00"), "a", "0 4 * * *", schedule.Options{})
	require.NoError(t, err)
	s.NextScheduleTime = at(t, "2026-03-02 09:00")
	now := utc(t, "2026-03-02 04:00")
	d, err := s.Decide(now, "a", "0 4 * * *", schedule.Options{})
	require.NoError(t, err)
	require.Equal(t, schedule.Start, d.Verdict)
	require.Equal(t, d.ScheduledTime, s.NextScheduleTime.UTC())
	_, ok := s.Candidate(now, types.NamespacedName{Name: "a"}, false, 0)
	require.True(t, ok)
}

// TestStatusClockBehindReason proves that the text names the recorded time that is in the future, and the first start
// after it.
func TestStatusClockBehindReason(t *testing.T) {
	const advice = ". If the clock is right, it was ahead when that was recorded: remove lastScheduleTime and scheduleSince from the status"
	tests := map[string]struct {
		reason      string
		since, last string
		options     schedule.Options
		want        string
		caughtUp    time.Duration // at most ten minutes
	}{
		"LastScheduleTime": {
			reason: "a run was recorded when the clock was a year ahead",
			since:  "2026-03-01 00:00", last: "2027-03-02 12:00", caughtUp: 10 * time.Minute,
			want: "the clock is behind lastScheduleTime, 2027-03-02T12:00:00Z: nothing starts until 2027-03-02T13:00:00Z",
		},
		"ScheduleSince": {
			reason: "the clock was ahead when the object was first seen",
			since:  "2026-03-02 12:04:30", caughtUp: 4*time.Minute + 30*time.Second,
			want: "the clock is behind scheduleSince, 2026-03-02T12:04:30Z: nothing starts until 2026-03-02T13:00:00Z",
		},
		"Both": {
			reason: "the later time counts",
			since:  "2027-03-02 12:30", last: "2027-03-02 12:00", caughtUp: 10 * time.Minute,
			want: "the clock is behind scheduleSince, 2027-03-02T12:30:00Z: nothing starts until 2027-03-02T13:00:00Z",
		},
		"SpreadAndBlackout": {
			reason: "a run starts at its place in the spread, and after a blackout window",
			since:  "2026-03-01 00:00", last: "2026-03-02 12:03",
			options: schedule.Options{SpreadSeconds: 600, BlackoutWindows: []schedule.BlackoutWindow{{Start: "12:30", End: "14:00"}}}, caughtUp: 3 * time.Minute,
			want: "the clock is behind lastScheduleTime, 2026-03-02T12:03:00Z: nothing starts until 2026-03-02T14:07:25Z",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := utc(t, "2026-03-02 12:00")
			var s schedule.Status
			decide := func() schedule.Decision {
				t.Helper()
				d, err := s.Decide(now, "uid", "0 * * * *", tc.options)
				require.NoError(t, err)
				return d
			}
			decide() // this call sets the hash
			s.ScheduleSince, s.LastScheduleTime = at(t, tc.since), at(t, tc.last)

			d := decide()
			require.Equal(t, schedule.ClockBehind, d.Verdict, tc.reason)
			require.Equal(t, tc.want+advice, s.ClockBehindReason(d), tc.reason)
			require.Equal(t, tc.caughtUp, d.RequeueAfter(now), "a pass comes when the clock has caught up")

			s.ScheduleSince, s.LastScheduleTime = nil, nil // the message advises to do this
			require.Equal(t, schedule.Waiting, decide().Verdict, "no run of the past is repeated")
		})
	}
}

// TestDueClockBehindForGood has a calendar without a time after the recorded time. RequeueAfter still asks for a reconcile when
// the clock has caught up.
func TestDueClockBehindForGood(t *testing.T) {
	now := utc(t, "2026-03-02 12:00")
	in := schedule.Input{Schedule: once{utc(t, "2026-03-02 12:02")}, LastScheduleTime: at(t, "2026-03-02 12:02")}
	d, err := schedule.Due(now, in)
	require.NoError(t, err)
	require.Equal(t, schedule.ClockBehind, d.Verdict)
	require.Equal(t, 2*time.Minute, d.RequeueAfter(now))
	s := schedule.Status{LastScheduleTime: in.LastScheduleTime}
	require.Contains(t, s.ClockBehindReason(d), "the clock is behind lastScheduleTime, 2026-03-02T12:02:00Z: nothing starts. If")
}

func TestStatusCandidate(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "a"}
	var s schedule.Status
	now := utc(t, "2026-03-01 12:00")
	candidate := func(at time.Time, running bool) (schedule.Candidate, bool) {
		return s.Candidate(at, name, running, time.Minute)
	}
	_, ok := candidate(now, false)
	require.False(t, ok, "it has no next scheduled time")
	_, err := s.Decide(now, "uid", "0 4 * * *", schedule.Options{})
	require.NoError(t, err)
	due := s.NextScheduleTime.Time
	_, ok = candidate(due.Add(59*time.Second), false)
	require.False(t, ok, "its offset has not passed")
	waits, ok := candidate(due.Add(time.Minute), false)
	require.True(t, ok)
	require.Equal(t, schedule.Candidate{Object: name, Due: due}, waits)
	runs, ok := candidate(now, true)
	require.True(t, ok)
	require.True(t, runs.Running)
}

func TestStatusDeepCopyInto(t *testing.T) {
	var s, other schedule.Status
	_, err := s.Decide(utc(t, "2026-03-01 12:00"), "uid", "@daily", schedule.Options{})
	require.NoError(t, err)
	s.DeepCopyInto(&other)
	require.Equal(t, s, other)
	require.NotSame(t, s.ScheduleSince, other.ScheduleSince)
}
