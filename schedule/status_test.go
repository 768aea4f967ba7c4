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
	next("2026-03-02 04:00") // until it is recorded: for others it is a waiting candidate
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
	require.ErrorIs(t, err, schedule.ErrInvalid)
	require.Nil(t, s.NextScheduleTime, "an invalid schedule has no next time")
	require.Nil(t, s.ScheduleSince, "a corrected schedule takes effect anew")
}

// NextScheduleTime is the end of the blackout window, without the spread.
func TestStatusDecideBlackoutWindow(t *testing.T) {
	var s schedule.Status
	options := schedule.Options{BlackoutWindows: []schedule.BlackoutWindow{{Start: "03:00", End: "06:00"}}, SpreadSeconds: 600}
	for _, now := range []string{"2026-03-01 12:00", "2026-03-02 04:30", "2026-03-02 06:00"} {
		_, err := s.Decide(utc(t, now), "a", "0 4 * * *", options)
		require.NoError(t, err)
		require.Equal(t, utc(t, "2026-03-02 06:00"), s.NextScheduleTime.UTC(), now)
	}
}

// A run that may start is a candidate, also if NextScheduleTime promised a later one, as after a change of the deadline.
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
