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

func at(t testing.TB, date string) *metav1.Time {
	t.Helper()
	if date == "" {
		return nil
	}
	return new(metav1.NewTime(utc(t, date)))
}

// shown is a decision as tests write it.
type shown struct {
	Verdict            schedule.Verdict
	Latest, Next, Wake string
	Missed             int
}

func show(d schedule.Decision) shown {
	format := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(dated + ":05")
	}
	return shown{d.Verdict, format(d.ScheduledTime), format(d.Next), format(d.RequeueAt), d.Missed}
}

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
			reason:   "nothing before the first time after since",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-02 03:59:59",
			want: shown{"Waiting", "", "2026-03-02 04:00:00", "2026-03-02 04:00:00", 0},
		},
		"OnTheSecond": {
			reason:   "the time itself is due",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-02 04:00:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"Done": {
			reason:   "what was run is not due again",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", last: "2026-03-02 04:00", now: "2026-03-02 04:00:01",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"NoSurprise": {
			reason:   "a schedule that is new or changed has missed nothing of the time before",
			schedule: "0 4 * * *", since: "2026-03-02 04:30", last: "2026-02-01 04:00", now: "2026-03-02 04:30:01",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"SinceIsNotAfter": {
			reason:   "the moment of the change itself is not after the change",
			schedule: "0 4 * * *", since: "2026-03-02 04:00", now: "2026-03-02 04:00:00",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"LastRunAlone": {
			reason:   "since need not be known",
			schedule: "0 4 * * *", last: "2026-03-01 04:00", now: "2026-03-02 05:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"Missed": {
			reason:   "of three that were missed, the latest is run, once",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", now: "2026-03-04 12:00",
			want: shown{"Start", "2026-03-04 04:00:00", "2026-03-05 04:00:00", "2026-03-05 04:00:00", 2},
		},
		"MissedMinutes": {
			reason:   "a year down: more than a hundred is nothing special",
			schedule: "* * * * *", since: "2025-03-01 00:00", now: "2026-03-01 00:00:30",
			want: shown{"Start", "2026-03-01 00:00:00", "2026-03-01 00:01:00", "2026-03-01 00:01:00", 365*24*60 - 1},
		},
		"MissedDecades": {
			reason:   "fifty years down, twelve of them with a leap day before this one",
			schedule: "0 0 29 2 *", since: "1976-03-01 00:00", now: "2026-03-01 00:00",
			want: shown{"Start", "2024-02-29 00:00:00", "2028-02-29 00:00:00", "2028-02-29 00:00:00", 11},
		},
		"MissedNights": {
			reason:   "in Berlin, each night has one, those in which the clock is set too",
			schedule: "30 2 * * *", zone: "Europe/Berlin", since: "2025-12-31 12:00", now: "2026-12-31 12:00",
			want: shown{"Start", "2026-12-31 01:30:00", "2027-01-01 01:30:00", "2027-01-01 01:30:00", 364},
		},
		"MissedHours": {
			reason:   "in Berlin, a year has as many hours as elsewhere",
			schedule: "30 * * * *", zone: "Europe/Berlin", since: "2025-12-31 12:00", now: "2026-12-31 12:00",
			want: shown{"Start", "2026-12-31 11:30:00", "2026-12-31 12:30:00", "2026-12-31 12:30:00", 365*24 - 1},
		},
		"MissedHalfHour": {
			reason:   "on Lord Howe Island 02:10 was jumped over, so the latest is 01:10",
			schedule: "10 * * * *", zone: "Australia/Lord_Howe", since: "2026-10-03 12:00", now: "2026-10-03 15:40",
			want: shown{"Start", "2026-10-03 14:40:00", "2026-10-03 16:10:00", "2026-10-03 16:10:00", 2},
		},
		"MissedTwice": {
			reason:   "in Berlin 02:30 is shown twice, and a schedule of every hour has missed both",
			schedule: "30 * 25 10 *", zone: "Europe/Berlin", since: "2026-10-01 12:00", now: "2026-10-25 01:10",
			want: shown{"Start", "2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 01:30:00", 2},
		},
		"InTime": {
			reason:   "at its deadline a run may still start",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: hour, now: "2026-03-03 05:00:00",
			want: shown{"Start", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 1},
		},
		"TooLate": {
			reason:   "a second later it may not, and counts as missed",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: hour, now: "2026-03-03 05:00:01",
			want: shown{"TooLate", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 2},
		},
		"NoTime": {
			reason:   "a deadline of zero allows the very second",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", deadline: new(int64(0)), now: "2026-03-03 04:00:00",
			want: shown{"Start", "2026-03-03 04:00:00", "2026-03-04 04:00:00", "2026-03-04 04:00:00", 1},
		},
		"Longest": {
			reason:   "a deadline of ages is none",
			schedule: "0 4 * * *", since: "1700-01-01 00:00", deadline: new(int64(math.MaxInt64)), now: "2026-03-03 03:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 119130 - 1},
		},
		"Suspended": {
			reason:   "whatever was missed",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", suspended: true, now: "2026-03-04 12:00",
			want: shown{Verdict: "Suspended"},
		},
		"Deferred": {
			reason:   "due in a window: look again when it ends",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 12:00",
			want: shown{"Deferred", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-02 18:00:00", 0},
		},
		"LetGo": {
			reason:   "the window has ended",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 18:00",
			want: shown{"Start", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-03 18:00:00", 0},
		},
		"LeftOut": {
			reason:   "the window has ended after the deadline",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, deadline: hour, now: "2026-03-02 18:00",
			want: shown{"TooLate", "2026-03-02 12:00:00", "2026-03-03 12:00:00", "2026-03-03 18:00:00", 1},
		},
		"LateInWindow": {
			reason:   "due before the window, but nobody was there",
			schedule: "0 7 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 09:00",
			want: shown{"Deferred", "2026-03-02 07:00:00", "2026-03-03 07:00:00", "2026-03-02 18:00:00", 0},
		},
		"WakeAfterWindow": {
			reason:   "what will be due in a window is looked at when it ends",
			schedule: "0 12 * * *", since: "2026-03-01 13:00", windows: office, now: "2026-03-02 07:00",
			want: shown{"Waiting", "", "2026-03-02 12:00:00", "2026-03-02 18:00:00", 0},
		},
		"Offset": {
			reason:   "due, but its place comes later",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 5 * time.Minute, now: "2026-03-02 04:04:59",
			want: shown{"Waiting", "", "2026-03-02 04:00:00", "2026-03-02 04:05:00", 0},
		},
		"OffsetOver": {
			reason:   "its place has come; what is recorded is the schedule's time",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 5 * time.Minute, now: "2026-03-02 04:05:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 04:05:00", 0},
		},
		"OffsetAndDeadline": {
			reason:   "the deadline counts from its place",
			schedule: "0 4 * * *", since: "2026-03-01 05:00", offset: 2 * time.Hour, deadline: hour, now: "2026-03-02 07:00:00",
			want: shown{"Start", "2026-03-02 04:00:00", "2026-03-03 04:00:00", "2026-03-03 06:00:00", 0},
		},
		"OffsetBeyondTheNext": {
			reason:   "a place behind the next time loses no run",
			schedule: "* * * * *", last: "2026-03-02 04:00", offset: 150 * time.Second, now: "2026-03-02 04:03:30",
			want: shown{"Start", "2026-03-02 04:01:00", "2026-03-02 04:02:00", "2026-03-02 04:04:30", 0},
		},
		"OffsetIntoWindow": {
			reason:   "a place that lies in a window waits for its end, and comes at the offset after that",
			schedule: "55 7 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 07:56",
			want: shown{"Waiting", "", "2026-03-02 07:55:00", "2026-03-02 18:10:00", 0},
		},
		"SpreadAfterWindow": {
			reason:   "many that a window has put off do not start together at its end",
			schedule: "0 9 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 18:09",
			want: shown{"Deferred", "2026-03-02 09:00:00", "2026-03-03 09:00:00", "2026-03-02 18:10:00", 0},
		},
		"SpreadedAfterWindow": {
			reason:   "the place after the window has come",
			schedule: "0 9 * * *", since: "2026-03-01 13:00", offset: 10 * time.Minute, windows: office, now: "2026-03-02 18:10",
			want: shown{"Start", "2026-03-02 09:00:00", "2026-03-03 09:00:00", "2026-03-03 18:10:00", 0},
		},
		"NoRoomAfterWindow": {
			reason:   "the place after the window lies in the next day's: at its end is better than never",
			schedule: "20 0 * * *", since: "2026-03-01 13:00", offset: 15 * time.Hour, windows: office, now: "2026-03-02 18:00",
			want: shown{"Start", "2026-03-02 00:20:00", "2026-03-03 00:20:00", "2026-03-03 18:00:00", 0},
		},
		"OffsetAndChange": {
			reason:   "a change between due time and place takes effect at once",
			schedule: "0 4 * * *", since: "2026-03-02 04:01", offset: 5 * time.Minute, now: "2026-03-02 04:02",
			want: shown{"Waiting", "", "2026-03-03 04:00:00", "2026-03-03 04:05:00", 0},
		},
		"SetBack": {
			reason:   "the clock shows again what was run: it is not run twice",
			schedule: "*/30 * * * *", since: "2026-03-01 00:00", last: "2026-03-02 12:00", now: "2026-03-02 11:29",
			want: shown{"ClockBehind", "", "2026-03-02 12:30:00", "2026-03-02 12:30:00", 0},
		},
		"SetBackASecond": {
			reason:   "another machine's clock may be a second behind",
			schedule: "0 4 * * *", since: "2026-03-01 00:00", last: "2026-03-02 04:00", now: "2026-03-02 03:59:59",
			want: shown{"ClockBehind", "", "2026-03-03 04:00:00", "2026-03-03 04:00:00", 0},
		},
		"SinceAhead": {
			reason:   "recorded by a machine whose clock is ahead",
			schedule: "* * * * *", since: "2026-03-02 04:00:30", now: "2026-03-02 04:00:10",
			want: shown{"ClockBehind", "", "2026-03-02 04:01:00", "2026-03-02 04:01:00", 0},
		},
		"CaughtUp": {
			reason:   "the clock has caught up: no more than that was lost",
			schedule: "*/30 * * * *", since: "2026-03-01 00:00", last: "2026-03-02 12:00", now: "2026-03-02 12:30",
			want: shown{"Start", "2026-03-02 12:30:00", "2026-03-02 13:00:00", "2026-03-02 13:00:00", 0},
		},
		"Interval": {
			reason:   "an interval counts from since",
			schedule: "@every 90m", since: "2026-03-01 00:10:05", now: "2026-03-01 01:40:04",
			want: shown{"Waiting", "", "2026-03-01 01:40:05", "2026-03-01 01:40:05", 0},
		},
		"IntervalMissed": {
			reason:   "not from when the operator came back",
			schedule: "@every 90m", since: "2026-03-01 00:10", now: "2026-03-02 00:00",
			want: shown{"Start", "2026-03-01 22:40:00", "2026-03-02 00:10:00", "2026-03-02 00:10:00", 14},
		},
		"IntervalAfterRun": {
			reason:   "nor from the last run, though that was recorded otherwise than it should",
			schedule: "@every 90m", since: "2026-03-01 00:10", last: "2026-03-01 01:44:13", now: "2026-03-01 02:00",
			want: shown{"Waiting", "", "2026-03-01 03:10:00", "2026-03-01 03:10:00", 0},
		},
		"IntervalWithoutSince": {
			reason:   "only where nothing else is known",
			schedule: "@every 90m", last: "2026-03-01 01:40", now: "2026-03-01 04:41",
			want: shown{"Start", "2026-03-01 04:40:00", "2026-03-01 06:10:00", "2026-03-01 06:10:00", 1},
		},
		"IntervalChanged": {
			reason:   "a change begins anew",
			schedule: "@every 24h", since: "2026-03-05 09:00", last: "2026-03-05 08:00", now: "2026-03-06 08:30",
			want: shown{"Waiting", "", "2026-03-06 09:00:00", "2026-03-06 09:00:00", 0},
		},
		"IntervalOfDecades": {
			reason:   "forty years down, to the second",
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

func TestDueRefuses(t *testing.T) {
	s, since := parsed(t, "0 4 * * *", ""), at(t, "2026-03-01 00:00")
	const (
		none     = "schedule: there is none; give what Parse returned"
		unknown  = "since: neither it nor the last run is known; record when the schedule began to hold"
		negative = ": it is negative; write 0 or more, or leave it out for no limit"
	)
	cases := map[string]struct {
		reason string
		plan   schedule.Input
		want   string
	}{
		"NoSchedule":   {"forgotten", schedule.Input{Since: since}, none},
		"ParseFailed":  {"what Parse returns beside an error", schedule.Input{Since: since, Schedule: (*schedule.Schedule)(nil)}, none},
		"ZeroSchedule": {"it would never come", schedule.Input{Since: since, Schedule: &schedule.Schedule{}}, none},
		"NoSince":      {"every pass would begin anew, and nothing ever be due", schedule.Input{Schedule: s}, unknown},
		"ZeroTimes":    {"a zero time is not known", schedule.Input{Schedule: s, Since: &metav1.Time{}, LastScheduleTime: &metav1.Time{}}, unknown},
		"Deadline": {
			"CronJob's validation refuses it", schedule.Input{Schedule: s, Since: since, StartingDeadlineSeconds: new(int64(-5))},
			"startingDeadlineSeconds -5" + negative,
		},
		"Suspended": {
			"what is wrong is said before it matters",
			schedule.Input{Schedule: s, Since: since, StartingDeadlineSeconds: new(int64(-1)), Suspend: true},
			"startingDeadlineSeconds -1" + negative,
		},
		"Offset": {"no place is before", schedule.Input{Schedule: s, Since: since, Offset: -time.Second}, "offset -1s: it is negative; take what Offset returns"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := schedule.Due(utc(t, "2026-03-02 00:00"), tc.plan)
			require.ErrorIs(t, err, schedule.ErrInvalid, tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
			require.Zero(t, d)
		})
	}
}

func TestAfter(t *testing.T) {
	now := utc(t, "2026-03-01 12:00")
	for want, wake := range map[time.Duration]time.Time{
		0:                {}, // no RequeueAfter: only a change can bring a run
		1:                now.Add(-time.Hour),
		time.Second:      now.Add(time.Second),
		10 * time.Minute: now.AddDate(1, 0, 0),
	} {
		require.Equal(t, want, schedule.Decision{RequeueAt: wake}.RequeueAfter(now))
	}
	require.Equal(t, time.Duration(1), schedule.Decision{RequeueAt: now}.RequeueAfter(now), "zero would be none")
}

// Stepping the clock from wake to wake, with an operator that is down now and then, each due time is run or missed, once.
func TestEveryTimeIsRunOrMissedOnce(t *testing.T) {
	for _, text := range []string{"*/7 * * * *", "30 2 * * *", "15,45 1-3 * * SUN", "@every 25m"} {
		s := parsed(t, text, "Europe/Berlin")
		begin := utc(t, "2026-03-27 00:00")
		p := schedule.Input{Schedule: s, Since: new(metav1.NewTime(begin)), Offset: 90 * time.Second, StartingDeadlineSeconds: new(int64(1200))}
		now, runs, missed := begin, 0, 0
		for passes := 0; now.Before(begin.AddDate(0, 0, 14)); passes++ {
			d, err := schedule.Due(now, p)
			require.NoError(t, err)
			if d.Verdict == schedule.Start || d.Verdict == schedule.TooLate {
				require.True(t, p.LastScheduleTime.IsZero() || d.ScheduledTime.After(p.LastScheduleTime.Time))
				missed += d.Missed
				if d.Verdict == schedule.Start {
					runs++
				}
				p.LastScheduleTime = new(metav1.NewTime(d.ScheduledTime))
			}
			require.True(t, d.RequeueAt.After(now), "%v at %v", d, now)
			now = d.RequeueAt
			if passes%10 == 9 {
				now = now.Add(7 * time.Hour)
			}
		}
		d, err := schedule.Due(now, schedule.Input{Schedule: s, Since: new(metav1.NewTime(begin)), Offset: 90 * time.Second})
		require.NoError(t, err)
		all := d.Missed + 1
		if d.ScheduledTime.After(p.LastScheduleTime.Time) {
			last, err := schedule.Due(now, p)
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
