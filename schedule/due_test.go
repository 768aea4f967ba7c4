package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/schedule"
)

func TestDue(t *testing.T) {
	hour := new(int64(3600))
	office := windows(t, "", schedule.BlackoutWindow{Start: "08:00", End: "18:00"})
	cases := map[string]struct {
		reason         string
		schedule, zone string
		since, last    string
		deadline       *int64
		suspended      bool
		windows        schedule.BlackoutWindows
		offset         time.Duration
		now            string
		want           shown
	}{
		"Waiting": {
			reason:   "Nothing is due before the first scheduled time after Since.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-02 03:59:59",
			want: shown{"Waiting", "", "2026-03-02 04:00:00", "2026-03-02 04:00:00", 0},
		},
		"OnTheSecond": {
			reason:   "A run is due at its scheduled time.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-02 04:00:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"Done": {
			reason:   "A scheduled time that was run is not due again.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", last: "2026-03-02 04:00", now: "2026-03-02 04:00:01",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"NoSurprise": {
			reason:   "A new or changed schedule has not missed scheduled times before Since.",
			schedule: "0 4 * * *", since: "2026-03-02 04:30", last: "2026-02-01 04:00", now: "2026-03-02 04:30:01",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"SinceIsNotAfter": {
			reason:   "A scheduled time equal to Since is not due.",
			schedule: "0 4 * * *", since: "2026-03-02 04:00", now: "2026-03-02 04:00:00",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"LastRunAlone": {
			reason:   "Since may be unset.",
			schedule: "0 4 * * *", last: "2026-03-01 04:00", now: "2026-03-02 05:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"Missed": {
			reason:   "Of three missed times only the latest is run.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-04 12:00",
			want: shown{"Start", "2026-03-04 04:00:00", "2026-03-05 04:00:00", "2026-03-05 04:00:00", 2},
		},
		"MissedMinutes": {
			reason:   "After a year of missed minutes, many more than a hundred.",
			schedule: "* * * * *", since: "2025-03-01 00:00", now: "2026-03-01 00:00:30",
			want: shown{"Start", "2026-03-01 00:00:00", "2026-03-01 00:01:00", "2026-03-01 00:01:00", 365*24*60 - 1},
		},
		"MissedDecades": {
			reason:   "After fifty years, with twelve leap days.",
			schedule: "0 0 29 2 *", since: "1976-03-01 00:00", now: "2026-03-01 00:00",
			want: shown{"Start", "2024-02-29 00:00:00", "2028-02-29 00:00:00", "2028-02-29 00:00:00", 11},
		},
		"MissedNights": {
			reason:   "In Berlin each night counts once, also those in which clocks are set.",
			schedule: "30 2 * * *", zone: "Europe/Berlin", since: "2025-12-31 12:00", now: "2026-12-31 12:00",
			want: shown{"Start", "2026-12-31 01:30:00", "2027-01-01 01:30:00", "2027-01-01 01:30:00", 364},
		},
		"MissedHours": {
			reason:   "In Berlin a year has as many hours as elsewhere.",
			schedule: "30 * * * *", zone: "Europe/Berlin", since: "2025-12-31 12:00", now: "2026-12-31 12:00",
			want: shown{"Start", "2026-12-31 11:30:00", "2026-12-31 12:30:00", "2026-12-31 12:30:00", 365*24 - 1},
		},
		"MissedHalfHour": {
			reason:   "On Lord Howe Island 02:10 was skipped, so the latest is 01:10.",
			schedule: "10 * * * *", zone: "Australia/Lord_Howe", since: "2026-10-03 12:00", now: "2026-10-03 15:40",
			want: shown{"Start", "2026-10-03 14:40:00", "2026-10-03 16:10:00", "2026-10-03 16:10:00", 2},
		},
		"MissedTwice": {
			reason:   "In Berlin 02:30 occurs twice, and a schedule for every hour has missed both.",
			schedule: "30 * 25 10 *", zone: "Europe/Berlin", since: "2026-10-01 12:00", now: "2026-10-25 01:10",
			want: shown{"Start", "2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 01:30:00", 2},
		},
		"InTime": {
			reason:   "At its deadline a run may still start.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: hour, now: "2026-03-03 05:00:00",
			want: shown{"Start", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 1},
		},
		"TooLate": {
			reason:   "A second after its deadline a run may not start, and counts as missed.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: hour, now: "2026-03-03 05:00:01",
			want: shown{"TooLate", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 2},
		},
		"NoTime": {
			reason:   "A deadline of zero allows a start within the same second.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: new(int64(0)), now: "2026-03-03 04:00:00",
			want: shown{"Start", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 1},
		},
		"Longest": {
			reason:   "A deadline beyond the range of a duration is no limit.",
			schedule: "0 4 * * *", since: "1700-01-01 00:00", deadline: new(int64(math.MaxInt64)), now: "2026-03-03 03:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 119130 - 1},
		},
		"Suspended": {
			reason:   "While suspended nothing starts, whatever was missed.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", suspended: true, now: "2026-03-04 12:00",
			want: shown{Verdict: "Suspended"},
		},
		"Deferred": {
			reason:   "A run that is due in a blackout window is delayed to its end.",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 12:00",
			want: shown{"Deferred", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-02 18:00:00", 0},
		},
		"AfterWindow": {
			reason:   "The run starts when the window has ended.",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 18:00",
			want: shown{"Start", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-03 18:00:00", 0},
		},
		"SkippedByWindow": {
			reason:   "The window ends after the deadline, so the run is skipped.",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, deadline: hour, now: "2026-03-02 18:00",
			want: shown{"TooLate", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-03 18:00:00", 1},
		},
		"SkippedInWindow": {
			reason:   "It is certain at once that the window ends after the deadline.",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, deadline: hour, now: "2026-03-02 12:00",
			want: shown{"TooLate", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-03 18:00:00", 1},
		},
		"SkippedByOffset": {
			reason:   "The window ends before the deadline, but the run's place after it is beyond that.",
			schedule: "0 17 * * *", since: "2026-03-01 19:00", windows: office, deadline: new(int64(1800)), offset: 59 * time.Minute, now: "2026-03-02 18:00",
			want: shown{"TooLate", "2026-03-02 17:00:00", "2026-03-03 17:00:00", "2026-03-03 18:59:00", 1},
		},
		"LateInWindow": {
			reason:   "The run was due before the window, but the operator was down.",
			schedule: "0 7 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 09:00",
			want: shown{"Deferred", "2026-03-02 07:00:00", "2026-03-03 07:00:00", "2026-03-02 18:00:00", 0},
		},
		"RequeueAfterWindow": {
			reason:   "A run that will be due in a window is looked at when the window ends.",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 07:00",
			want: shown{"Waiting", "", "2026-03-02 12:00:00", "2026-03-02 18:00:00", 0},
		},
		"Offset": {
			reason:   "The scheduled time has come, but not the offset after it.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 5 * time.Minute, now: "2026-03-02 04:04:59",
			want: shown{"Waiting", "", "2026-03-02 04:00:00", "2026-03-02 04:05:00", 0},
		},
		"OffsetPassed": {
			reason:   "The offset has passed; the scheduled time does not include it.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 5 * time.Minute, now: "2026-03-02 04:05:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:05:00", 0},
		},
		"OffsetAndDeadline": {
			reason:   "The deadline counts from the start time.",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 2 * time.Hour, deadline: hour, now: "2026-03-02 07:00:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 06:00:00", 0},
		},
		"OffsetBeyondTheNext": {
			reason:   "An offset longer than the interval loses no run.",
			schedule: "* * * * *", last: "2026-03-02 04:00", offset: 150 * time.Second, now: "2026-03-02 04:03:30",
			want: shown{"Start", "2026-03-02 04:01:00", "2026-03-02 04:02:00", "2026-03-02 04:04:30", 0},
		},
		"OffsetIntoWindow": {
			reason:   "A start time in a window is delayed to the offset after the window.",
			schedule: "55 7 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 07:56",
			want: shown{"Waiting", "", "2026-03-02 07:55:00", "2026-03-02 18:10:00", 0},
		},
		"SpreadAfterWindow": {
			reason:   "many that a window has put off do not start together at its end",
			schedule: "0 9 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 18:09",
			want: shown{"Deferred", "2026-03-02 09:00:00", "2026-03-03 09:00:00", "2026-03-02 18:10:00", 0},
		},
		"SpreadAfterWindowPassed": {
			reason:   "The offset after the window has passed.",
			schedule: "0 9 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 18:10",
			want: shown{"Start", "2026-03-02 09:00:00", "2026-03-03 09:00:00", "2026-03-03 18:10:00", 0},
		},
		"LateBeforeWindow": {
			reason:   "The operator was down at the start time before the window; after the window the offset applies again.",
			schedule: "0 7 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 18:09",
			want: shown{"Deferred", "2026-03-02 07:00:00", "2026-03-03 07:00:00", "2026-03-02 18:10:00", 0},
		},
		"LateSinceBeforeWindow": {
			reason:   "The operator was down for days; the last window counts.",
			schedule: "0 7 * * *", since: "2026-02-20 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 06:00",
			want: shown{"Start", "2026-03-01 07:00:00", "2026-03-02 07:00:00", "2026-03-02 07:10:00", 8},
		},
		"NoRoomAfterWindow": {
			reason:   "The offset after the window leads into the next window, each day, so it wraps around after 14 hours.",
			schedule: "20 0 * * *", since: "2026-03-01 13:00", offset: 15 * time.Hour, windows: office, now: "2026-03-02 18:00",
			want: shown{"Deferred", "2026-03-02 00:20:00", "2026-03-03 00:20:00", "2026-03-02 19:00:00", 0},
		},
		"NoRoomAfterWindowPassed": {
			reason:   "The offset that has wrapped around has passed.",
			schedule: "20 0 * * *", since: "2026-03-01 13:00", offset: 15 * time.Hour, windows: office, now: "2026-03-02 19:00",
			want: shown{"Start", "2026-03-02 00:20:00", "2026-03-03 00:20:00", "2026-03-03 19:00:00", 0},
		},
		"ClockSetIntoWindow": {
			reason: "In Berlin 02:00 to 03:00 is skipped, and with it the start of the second window, which so begins at 03:00: the " +
				"half hour before that is shorter than the offset.",
			schedule: "30 0 * * *", zone: "Europe/Berlin", since: "2026-03-28 12:00", offset: 45 * time.Minute, now: "2026-03-29 00:20",
			windows: windows(t, "Europe/Berlin", schedule.BlackoutWindow{Start: "01:00", End: "01:30"}, schedule.BlackoutWindow{Start: "02:30", End: "04:00"}),
			want:    shown{"Deferred", "2026-03-28 23:30:00", "2026-03-29 22:30:00", "2026-03-29 02:45:00", 0},
		},
		"NextBeforeDeferred": {
			reason:   "A later run, whose place is after the window, starts before the one that is delayed.",
			schedule: "*/5 * * * *", since: "2026-03-02 06:00", last: "2026-03-02 17:20", offset: 33 * time.Minute, windows: office,
			now:  "2026-03-02 17:59",
			want: shown{"Deferred", "2026-03-02 17:25:00", "2026-03-02 17:30:00", "2026-03-02 18:03:00", 0},
		},
		"NextAfterWindow": {
			reason:   "The first run to start is not the next one, which the window delays, but the first whose place is after it.",
			schedule: "*/5 * * * *", since: "2026-03-02 06:00", last: "2026-03-02 10:25", offset: 33 * time.Minute, windows: office,
			now:  "2026-03-02 11:00",
			want: shown{"Waiting", "", "2026-03-02 10:30:00", "2026-03-02 18:03:00", 0},
		},
		"OffsetAndChange": {
			reason:   "A change between scheduled time and start time takes effect at once.",
			schedule: "0 4 * * *", since: "2026-03-02 04:01", offset: 5 * time.Minute, now: "2026-03-02 04:02",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:05:00", 0},
		},
		"SetBack": {
			reason:   "The clock shows the time of a run again; it is not run twice.",
			schedule: "*/30 * * * *", since: "2026-03-01 00:00", last: "2026-03-02 12:00", now: "2026-03-02 11:29",
			want: shown{"ClockBehind", "", "2026-03-02 12:30:00", "2026-03-02 12:30:00", 0},
		},
		"SetBackASecond": {
			reason:   "The clock of another machine may be a second behind.",
			schedule: "0 4 * * *", since: "2026-03-01 00:00", last: "2026-03-02 04:00", now: "2026-03-02 03:59:59",
			want: shown{"ClockBehind", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"SinceAhead": {
			reason:   "Since was recorded by a machine whose clock is ahead.",
			schedule: "* * * * *", since: "2026-03-02 04:00:30", now: "2026-03-02 04:00:10",
			want: shown{"ClockBehind", "", "2026-03-02 04:01:00", "2026-03-02 04:01:00", 0},
		},
		"CaughtUp": {
			reason:   "After the clock has caught up, the next run starts as usual.",
			schedule: "*/30 * * * *", since: "2026-03-01 00:00", last: "2026-03-02 12:00", now: "2026-03-02 12:30",
			want: shown{"Start", "2026-03-02 12:30:00", "2026-03-02 13:00:00", "2026-03-02 13:00:00", 0},
		},
		"Interval": {
			reason:   "An interval counts from Since.",
			schedule: "@every 90m", since: "2026-03-01 00:10:05", now: "2026-03-01 01:40:04",
			want: shown{"Waiting", "", "2026-03-01 01:40:05", "2026-03-01 01:40:05", 0},
		},
		"IntervalMissed": {
			reason:   "An interval does not count from the restart of the operator.",
			schedule: "@every 90m", since: "2026-03-01 00:10", now: "2026-03-02 00:00",
			want: shown{"Start", "2026-03-01 22:40:00", "2026-03-02 00:10:00", "2026-03-02 00:10:00", 14},
		},
		"IntervalAfterRun": {
			reason:   "An interval does not count from LastScheduleTime, even if that is not one of its times.",
			schedule: "@every 90m", since: "2026-03-01 00:10", last: "2026-03-01 01:44:13", now: "2026-03-01 02:00",
			want: shown{"Waiting", "", "2026-03-01 03:10:00", "2026-03-01 03:10:00", 0},
		},
		"IntervalWithoutSince": {
			reason:   "Without Since, an interval counts from LastScheduleTime.",
			schedule: "@every 90m", last: "2026-03-01 01:40", now: "2026-03-01 04:41",
			want: shown{"Start", "2026-03-01 04:40:00", "2026-03-01 06:10:00", "2026-03-01 06:10:00", 1},
		},
		"IntervalChanged": {
			reason:   "After a change an interval counts from the new Since.",
			schedule: "@every 24h", since: "2026-03-05 09:00", last: "2026-03-05 08:00", now: "2026-03-06 08:30",
			want: shown{"Waiting", "", "2026-03-06 09:00:00", "2026-03-06 09:00:00", 0},
		},
		"IntervalOfDecades": {
			reason:   "After forty years of missed seconds.",
			schedule: "@every 1s", since: "1986-01-01 00:00", now: "2026-01-01 00:00:00",
			want: shown{"Start", "2026-01-01 00:00:00", "2026-01-01 00:00:01", "2026-01-01 00:00:01", 14610*24*3600 - 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := schedule.Due(utc(t, tc.now), schedule.Input{
				Schedule: parsed(t, tc.schedule, tc.zone), Since: at(t, tc.since), LastScheduleTime: at(t, tc.last),
				StartingDeadlineSeconds: tc.deadline, Suspend: tc.suspended, BlackoutWindows: tc.windows, Offset: tc.offset,
			})
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, show(d)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDueInvalid(t *testing.T) {
	s, since := parsed(t, "0 4 * * *", ""), at(t, "2026-03-01 00:00")
	const (
		none     = "schedule: it is not set; pass the result of Parse"
		unknown  = "since: neither Since nor LastScheduleTime is set; set Since to the time from which the schedule is in effect"
		negative = ": it is negative; write 0 or more, or leave it out for no limit"
	)
	cases := map[string]struct {
		reason string
		input  schedule.Input
		want   string
	}{
		"NoSchedule":   {"The schedule is missing.", schedule.Input{Since: since}, none},
		"ParseFailed":  {"Parse returns this with an error.", schedule.Input{Since: since, Schedule: (*schedule.Schedule)(nil)}, none},
		"ZeroSchedule": {"It has no times.", schedule.Input{Since: since, Schedule: &schedule.Schedule{}}, none},
		"NoSince":      {"Each reconcile would begin anew, and nothing would ever be due.", schedule.Input{Schedule: s}, unknown},
		"ZeroTimes":    {"A zero time is as unset.", schedule.Input{Schedule: s, Since: &metav1.Time{}, LastScheduleTime: &metav1.Time{}}, unknown},
		"Deadline": {
			"CronJob's validation refuses it too.", schedule.Input{Schedule: s, Since: since, StartingDeadlineSeconds: new(int64(-5))},
			"startingDeadlineSeconds -5" + negative,
		},
		"Suspended": {
			"Invalid input is an error even while suspended.",
			schedule.Input{Schedule: s, Since: since, StartingDeadlineSeconds: new(int64(-1)), Suspend: true},
			"startingDeadlineSeconds -1" + negative,
		},
		"Offset": {"A run cannot start before its scheduled time.", schedule.Input{Schedule: s, Since: since, Offset: -time.Second}, "offset -1s: it is negative; pass the result of Offset"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := schedule.Due(utc(t, "2026-03-02 00:00"), tc.input)
			require.ErrorAs(t, err, new(*schedule.Error), tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
			require.Zero(t, d)
		})
	}
}

func TestDecisionRequeueAfter(t *testing.T) {
	now := utc(t, "2026-03-01 12:00")
	for want, at := range map[time.Duration]time.Time{
		0:                {}, // RequeueAfter is zero: no run can start until the input changes
		1:                now.Add(-time.Hour),
		time.Second:      now.Add(time.Second),
		10 * time.Minute: now.AddDate(1, 0, 0),
	} {
		require.Equal(t, want, schedule.Decision{RequeueAt: at}.RequeueAfter(now))
	}
	require.Equal(t, time.Duration(1), schedule.Decision{RequeueAt: now}.RequeueAfter(now), "zero would mean no RequeueAfter")
}

// The test sets the clock to RequeueAt again and again, and sometimes later, as if the operator was down. Each
// scheduled time is run or counted as missed exactly once.
func TestDueRunsOrMissesEachTimeOnce(t *testing.T) {
	for _, text := range []string{"*/7 * * * *", "30 2 * * *", "15,45 1-3 * * SUN", "@every 25m"} {
		s := parsed(t, text, "Europe/Berlin")
		begin := utc(t, "2026-03-27 00:00")
		in := schedule.Input{Schedule: s, Since: new(metav1.NewTime(begin)), Offset: 90 * time.Second, StartingDeadlineSeconds: new(int64(1200))}
		now, runs, missed := begin, 0, 0
		for reconciles := 0; now.Before(begin.AddDate(0, 0, 14)); reconciles++ {
			d, err := schedule.Due(now, in)
			require.NoError(t, err)
			if d.Verdict == schedule.Start || d.Verdict == schedule.TooLate {
				require.True(t, in.LastScheduleTime.IsZero() || d.ScheduledTime.After(in.LastScheduleTime.Time))
				missed += d.Missed
				if d.Verdict == schedule.Start {
					runs++
				}
				in.LastScheduleTime = new(metav1.NewTime(d.ScheduledTime))
			}
			require.True(t, d.RequeueAt.After(now), "%v at %v", d, now)
			now = d.RequeueAt
			if reconciles%10 == 9 {
				now = now.Add(7 * time.Hour)
			}
		}
		d, err := schedule.Due(now, schedule.Input{Schedule: s, Since: new(metav1.NewTime(begin)), Offset: 90 * time.Second})
		require.NoError(t, err)
		all := d.Missed + 1
		if d.ScheduledTime.After(in.LastScheduleTime.Time) {
			last, err := schedule.Due(now, in)
			require.NoError(t, err)
			all -= last.Missed
			if last.Verdict == schedule.Start {
				all--
			}
		}
		require.Equal(t, all, runs+missed, text)
		require.Positive(t, missed, text)
	}
}

// TestDueAllocatesNothing proves that Due allocates nothing; BenchmarkDue measures its time.
func TestDueAllocatesNothing(t *testing.T) {
	in := schedule.Input{
		Schedule: parsed(t, "* * * * *", "Europe/Berlin"), Since: at(t, "2025-01-01 00:00"),
		BlackoutWindows: windows(t, "Europe/Berlin", schedule.BlackoutWindow{Start: "08:00", End: "18:00"}),
	}
	now := utc(t, "2026-01-01 00:00")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := schedule.Due(now, in); err != nil {
			t.Fatal(err)
		}
	}))
}
