package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestScheduleNext(t *testing.T) {
	runNext(t, map[string]nextCase{
		"Minutes": {
			reason:   "Each time is strictly after the one before.",
			schedule: "* * * * *", zone: "UTC", from: "2026-12-31 23:58",
			want: []string{"Thu 2026-12-31 23:59 UTC", "Fri 2027-01-01 00:00 UTC", "Fri 2027-01-01 00:01 UTC"},
		},
		"Quarters": {
			reason:   "A step counts from zero, not from the time that Next is called with.",
			schedule: "*/15 * * * *", zone: "UTC", from: "2026-03-01 11:50",
			want: []string{"Sun 2026-03-01 12:00 UTC", "Sun 2026-03-01 12:15 UTC"},
		},
		"BusinessHours": {
			reason:   "A range of hours on a range of weekdays.",
			schedule: "0 9-11 * * MON-FRI", zone: "Europe/Berlin", from: "2026-07-31 10:30",
			want: []string{"Fri 2026-07-31 11:00 CEST", "Mon 2026-08-03 09:00 CEST", "Mon 2026-08-03 10:00 CEST"},
		},
		"MonthEnds": {
			reason:   "Months without a 31st are skipped.",
			schedule: "0 12 31 * *", zone: "UTC", from: "2026-01-31 12:00",
			want: []string{"Tue 2026-03-31 12:00 UTC", "Sun 2026-05-31 12:00 UTC", "Fri 2026-07-31 12:00 UTC", "Mon 2026-08-31 12:00 UTC"},
		},
		"Thirtieth": {
			reason:   "February is skipped.",
			schedule: "0 0 30 1,2,3 *", zone: "UTC", from: "2026-01-30 00:00",
			want: []string{"Mon 2026-03-30 00:00 UTC", "Sat 2027-01-30 00:00 UTC"},
		},
		"YearEnd": {
			reason:   "The last minute of a year, and the first.",
			schedule: "0,59 0,23 1,31 1,12 *", zone: "UTC", from: "2026-12-31 23:00",
			want: []string{"Thu 2026-12-31 23:59 UTC", "Fri 2027-01-01 00:00 UTC", "Fri 2027-01-01 00:59 UTC", "Fri 2027-01-01 23:00 UTC"},
		},
		"Yearly": {
			reason:   "A descriptor.",
			schedule: "@yearly", zone: "Asia/Tokyo", from: "2026-06-01 00:00",
			want: []string{"Fri 2027-01-01 00:00 JST", "Sat 2028-01-01 00:00 JST"},
		},
		"Weekly": {
			reason:   "A week begins on Sunday.",
			schedule: "@weekly", zone: "UTC", from: "2026-03-01 00:00",
			want: []string{"Sun 2026-03-08 00:00 UTC"},
		},
		"LeapDays": {
			reason:   "2000 has a leap day, though it ends a century.",
			schedule: "0 4 29 2 *", zone: "UTC", from: "1996-02-29 04:00",
			want: []string{"Tue 2000-02-29 04:00 UTC", "Sun 2004-02-29 04:00 UTC"},
		},
		"EightYears": {
			reason:   "2100 has no leap day; robfig/cron gives up after five years and returns the zero time.",
			schedule: "0 4 29 2 *", zone: "UTC", from: "2096-02-29 04:00",
			want: []string{"Fri 2104-02-29 04:00 UTC"},
		},
		"FridayOrThirteenth": {
			reason:   "If both day fields are restricted, a day has to match one of them.",
			schedule: "0 0 13 * FRI", zone: "UTC", from: "2026-10-09 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Fri 2026-10-16 00:00 UTC"},
		},
		"DayOfAnyWeek": {
			reason:   "A star does not restrict.",
			schedule: "0 0 13 * *", zone: "UTC", from: "2026-10-09 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Fri 2026-11-13 00:00 UTC"},
		},
		"StarWithStep": {
			reason:   "A star with a step restricts, as in CronJob: the 13th or every second weekday from Sunday.",
			schedule: "0 0 13 * */2", zone: "UTC", from: "2026-10-12 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Thu 2026-10-15 00:00 UTC"},
		},
		"EndOfALeapYear": {
			reason:   "Go returns a wrong end for that day's ZoneBounds; a search that relies on it never ends.",
			schedule: "59 * 30,31 12 *", zone: "America/New_York", from: "2060-12-31 21:59",
			want: []string{"Fri 2060-12-31 22:59 EST", "Fri 2060-12-31 23:59 EST", "Fri 2061-12-30 00:59 EST"},
		},
		"LongSteps": {
			reason:   "A step as long as the field matches only its beginning: every 60 minutes.",
			schedule: "*/60 * * * *", zone: "UTC", from: "2026-03-01 11:50",
			want: []string{"Sun 2026-03-01 12:00 UTC", "Sun 2026-03-01 13:00 UTC"},
		},
		"Interval": {
			reason:   "Next counts an interval from its argument, to the second.",
			schedule: "@every 1h30m", zone: "UTC", from: "2026-03-01 23:00:30",
			want: []string{"Mon 2026-03-02 00:30 UTC", "Mon 2026-03-02 02:00 UTC"},
		},
	})
}

func TestScheduleNextLocation(t *testing.T) {
	s := parsed(t, "0 9 * * *", "Asia/Tokyo")
	got := s.Next(on(t, "2026-03-01 12:00", "America/New_York"))
	require.Equal(t, "Sun 2026-03-01 19:00 EST", got.Format(clock), "09:00 in Tokyo, in the location of the argument")
}

func TestScheduleNextFractions(t *testing.T) {
	s := parsed(t, "0 9 * * *", "")
	nine := utc(t, "2026-03-01 09:00")
	require.Equal(t, nine, s.Next(nine.Add(-1)))
	require.Equal(t, nine.AddDate(0, 0, 1), s.Next(nine))
	require.Equal(t, nine.AddDate(0, 0, 1), s.Next(nine.Add(1)))
}

func TestScheduleNextLimits(t *testing.T) {
	s := parsed(t, "* * * * *", "Europe/Berlin")
	for _, at := range []time.Time{
		{}, time.Unix(-1<<62, 0), time.Unix(1<<62, 0), time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC), time.Unix(-1<<62, 0).UTC(),
	} {
		got := s.Next(at)
		require.True(t, got.IsZero() || got.Year() <= 9999, "%v: %v", at, got)
	}
	last := time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC)
	require.Equal(t, last, parsed(t, "* * * * *", "").Next(last.Add(-1)), "the last minute that the API can store")
	require.Zero(t, parsed(t, "* * * * *", "").Next(last))
	require.Zero(t, parsed(t, "@every 876000h", "").Next(last), "a hundred years")
}

func TestZeroSchedule(t *testing.T) {
	for name, s := range map[string]*schedule.Schedule{"zero": {}, "nil": nil} {
		require.Zero(t, s.Next(utc(t, "2026-03-01 09:00")), name)
		require.Empty(t, s.String(), name)
		require.Equal(t, time.UTC, s.Location(), name)
	}
}
