package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// A life in which the operator comes and goes; every step is a pass.
func TestStatus(t *testing.T) {
	var s schedule.Status
	daily, rules := "0 4 * * *", schedule.Options{StartingDeadlineSeconds: new(int64(3600))}
	decide := func(now string) schedule.Decision {
		t.Helper()
		d, err := s.Decide(utc(t, now), "uid", daily, rules)
		require.NoError(t, err)
		return d
	}
	next := func(want string) {
		t.Helper()
		require.Equal(t, utc(t, want), s.NextScheduleTime.UTC())
	}

	require.Equal(t, schedule.Waiting, decide("2026-03-01 12:00").Verdict)
	require.Equal(t, utc(t, "2026-03-01 12:00"), s.ScheduleSince.UTC(), "it is followed since it was first seen")
	next("2026-03-02 04:00")

	d := decide("2026-03-02 04:00")
	require.Equal(t, schedule.Start, d.Verdict)
	next("2026-03-02 04:00") // until it is done with: others count it among those that wait
	require.Equal(t, d, decide("2026-03-02 04:00"), "a crash before it was recorded changes nothing")
	s.Record(d)
	next("2026-03-03 04:00")
	require.Equal(t, schedule.Waiting, decide("2026-03-02 04:00").Verdict)

	d = decide("2026-03-05 06:00")
	require.Equal(t, schedule.TooLate, d.Verdict)
	s.Record(d)
	require.EqualValues(t, 3, s.MissedRuns)
	next("2026-03-06 04:00")

	since := s.ScheduleSince
	rules.StartingDeadlineSeconds, rules.SpreadSeconds = nil, 60
	decide("2026-03-05 07:00")
	require.Equal(t, since, s.ScheduleSince, "neither deadline nor spread make it another schedule")

	for name, change := range map[string]func(){
		"schedule": func() { daily = "0 5 * * *" },
		"zone":     func() { rules.TimeZone = "Europe/Berlin" },
		"windows":  func() { rules.BlackoutWindows = []schedule.BlackoutWindow{{Start: "08:00", End: "09:00"}} },
	} {
		before := s.ScheduleSince.Time
		change()
		now := before.Add(100 * 24 * time.Hour)
		d, err := s.Decide(now, "uid", daily, rules)
		require.NoError(t, err)
		require.Equal(t, schedule.Waiting, d.Verdict, "%s: a change starts no surprise run", name)
		require.True(t, s.ScheduleSince.Time.Equal(now), name)
	}

	daily = "0 0 30 2 *"
	_, err := s.Decide(utc(t, "2028-04-01 00:00"), "uid", daily, rules)
	require.ErrorIs(t, err, schedule.ErrInvalid)
	require.Nil(t, s.NextScheduleTime, "nothing comes next")
	require.Nil(t, s.ScheduleSince, "once it is put right, it is followed since then")
}

// What people are shown is when something will happen, but for the spread.
func TestNextScheduleTimeInAWindow(t *testing.T) {
	var s schedule.Status
	rules := schedule.Options{BlackoutWindows: []schedule.BlackoutWindow{{Start: "03:00", End: "06:00"}}, SpreadSeconds: 600}
	for _, now := range []string{"2026-03-01 12:00", "2026-03-02 04:30", "2026-03-02 06:00"} {
		_, err := s.Decide(utc(t, now), "a", "0 4 * * *", rules)
		require.NoError(t, err)
		require.Equal(t, utc(t, "2026-03-02 06:00"), s.NextScheduleTime.UTC(), now)
	}
}

func TestTurn(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "a"}
	var s schedule.Status
	now := utc(t, "2026-03-01 12:00")
	turn := func(at time.Time, running bool) (schedule.Candidate, bool) {
		return s.Candidate(at, name, running, time.Minute)
	}
	_, ok := turn(now, false)
	require.False(t, ok, "it has no schedule")
	_, err := s.Decide(now, "uid", "0 4 * * *", schedule.Options{})
	require.NoError(t, err)
	due := s.NextScheduleTime.Time
	_, ok = turn(due.Add(59*time.Second), false)
	require.False(t, ok, "its place in the spread has not come")
	waits, ok := turn(due.Add(time.Minute), false)
	require.True(t, ok)
	require.Equal(t, schedule.Candidate{Object: name, Due: due}, waits)
	runs, ok := turn(now, true)
	require.True(t, ok)
	require.True(t, runs.Running)
}

func TestReasons(t *testing.T) {
	week := []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}}
	for reason, set := range map[string]struct {
		schedule string
		rules    schedule.Options
	}{
		"InvalidSchedule":                {"TZ=UTC", schedule.Options{}},
		"InvalidTimeZone":                {"@daily", schedule.Options{TimeZone: "Mars/Olympus"}},
		"InvalidBlackoutWindows":         {"@daily", schedule.Options{BlackoutWindows: week}},
		"InvalidStartingDeadlineSeconds": {"@daily", schedule.Options{StartingDeadlineSeconds: new(int64(-1))}},
	} {
		var s schedule.Status
		_, err := s.Decide(utc(t, "2026-03-01 12:00"), "uid", set.schedule, set.rules)
		invalid, ok := errors.AsType[*schedule.Error](err)
		require.True(t, ok, reason)
		require.Equal(t, reason, invalid.Reason())
		require.ErrorIs(t, err, schedule.ErrInvalid)
	}
	_, err := schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "8", End: "09:00"})
	invalid, _ := errors.AsType[*schedule.Error](err)
	require.Equal(t, "blackoutWindows[0].start InvalidBlackoutWindows", invalid.Field+" "+invalid.Reason())
}

func TestDeepCopies(t *testing.T) {
	rules := schedule.Options{StartingDeadlineSeconds: new(int64(1)), BlackoutWindows: []schedule.BlackoutWindow{{Start: "08:00", End: "09:00", Days: []string{"Mon"}}}}
	var copied schedule.Options
	rules.DeepCopyInto(&copied)
	require.Equal(t, rules, copied)
	rules.BlackoutWindows[0].Days[0], *rules.StartingDeadlineSeconds = "Tue", 2
	require.Equal(t, "Mon", copied.BlackoutWindows[0].Days[0])
	require.EqualValues(t, 1, *copied.StartingDeadlineSeconds)

	var s, other schedule.Status
	_, err := s.Decide(utc(t, "2026-03-01 12:00"), "uid", "@daily", schedule.Options{})
	require.NoError(t, err)
	s.DeepCopyInto(&other)
	require.Equal(t, s, other)
	require.NotSame(t, s.ScheduleSince, other.ScheduleSince)
}
