package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

// dated is how tests write a time on the wall, and clock how they write what came of it.
const (
	dated = "2006-01-02 15:04"
	clock = "Mon 2006-01-02 15:04 MST"
)

func parsed(t testing.TB, text, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	require.NoError(t, err)
	return s
}

// on reads a date, with minutes or seconds, in a zone.
func on(t testing.TB, date, zone string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	layout := dated
	if strings.Count(date, ":") == 2 {
		layout += ":05"
	}
	at, err := time.ParseInLocation(layout, date, location)
	require.NoError(t, err)
	return at
}

func utc(t testing.TB, date string) time.Time { t.Helper(); return on(t, date, "UTC") }

// next lists what comes after a date, as many as wanted.
func next(t testing.TB, times schedule.Times, from time.Time, count int) (got []string) {
	t.Helper()
	for range count {
		from = times.Next(from)
		got = append(got, from.Format(clock))
	}
	return got
}

type page struct {
	reason   string
	schedule string
	zone     string
	from     string
	want     []string
}

func read(t *testing.T, pages map[string]page) {
	t.Helper()
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, p.schedule, p.zone)
			if diff := cmp.Diff(p.want, next(t, s, on(t, p.from, p.zone), len(p.want))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", p.reason, diff)
			}
		})
	}
}

func TestCalendar(t *testing.T) {
	read(t, map[string]page{
		"Minutes": {
			reason:   "every minute is strictly after the one before",
			schedule: "* * * * *", zone: "UTC", from: "2026-12-31 23:58",
			want: []string{"Thu 2026-12-31 23:59 UTC", "Fri 2027-01-01 00:00 UTC", "Fri 2027-01-01 00:01 UTC"},
		},
		"Quarters": {
			reason:   "a step begins at zero, not at the time of the change",
			schedule: "*/15 * * * *", zone: "UTC", from: "2026-03-01 11:50",
			want: []string{"Sun 2026-03-01 12:00 UTC", "Sun 2026-03-01 12:15 UTC"},
		},
		"BusinessHours": {
			reason:   "a range of hours on working days",
			schedule: "0 9-11 * * MON-FRI", zone: "Europe/Berlin", from: "2026-07-31 10:30",
			want: []string{"Fri 2026-07-31 11:00 CEST", "Mon 2026-08-03 09:00 CEST", "Mon 2026-08-03 10:00 CEST"},
		},
		"MonthEnds": {
			reason:   "months without a 31st are left out",
			schedule: "0 12 31 * *", zone: "UTC", from: "2026-01-31 12:00",
			want: []string{"Tue 2026-03-31 12:00 UTC", "Sun 2026-05-31 12:00 UTC", "Fri 2026-07-31 12:00 UTC", "Mon 2026-08-31 12:00 UTC"},
		},
		"Thirtieth": {
			reason:   "February has none",
			schedule: "0 0 30 1,2,3 *", zone: "UTC", from: "2026-01-30 00:00",
			want: []string{"Mon 2026-03-30 00:00 UTC", "Sat 2027-01-30 00:00 UTC"},
		},
		"YearEnd": {
			reason:   "the last minute of a year, and the first",
			schedule: "0,59 0,23 1,31 1,12 *", zone: "UTC", from: "2026-12-31 23:00",
			want: []string{"Thu 2026-12-31 23:59 UTC", "Fri 2027-01-01 00:00 UTC", "Fri 2027-01-01 00:59 UTC", "Fri 2027-01-01 23:00 UTC"},
		},
		"Yearly": {
			reason:   "a descriptor",
			schedule: "@yearly", zone: "Asia/Tokyo", from: "2026-06-01 00:00",
			want: []string{"Fri 2027-01-01 00:00 JST", "Sat 2028-01-01 00:00 JST"},
		},
		"Weekly": {
			reason:   "a week begins on Sunday",
			schedule: "@weekly", zone: "UTC", from: "2026-03-01 00:00",
			want: []string{"Sun 2026-03-08 00:00 UTC"},
		},
		"LeapDays": {
			reason:   "2000 has a leap day though it ends a century",
			schedule: "0 4 29 2 *", zone: "UTC", from: "1996-02-29 04:00",
			want: []string{"Tue 2000-02-29 04:00 UTC", "Sun 2004-02-29 04:00 UTC"},
		},
		"EightYears": {
			reason:   "2100 has none; robfig gives up after five years, and says never",
			schedule: "0 4 29 2 *", zone: "UTC", from: "2096-02-29 04:00",
			want: []string{"Fri 2104-02-29 04:00 UTC"},
		},
		"FridayOrThirteenth": {
			reason:   "with both limited, a day has to match one of them",
			schedule: "0 0 13 * FRI", zone: "UTC", from: "2026-10-09 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Fri 2026-10-16 00:00 UTC"},
		},
		"DayOfAnyWeek": {
			reason:   "a star is no limit",
			schedule: "0 0 13 * *", zone: "UTC", from: "2026-10-09 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Fri 2026-11-13 00:00 UTC"},
		},
		"StarWithStep": {
			reason:   "a star with a step is a limit, as in CronJob: the 13th or every second weekday from Sunday",
			schedule: "0 0 13 * */2", zone: "UTC", from: "2026-10-12 00:00",
			want: []string{"Tue 2026-10-13 00:00 UTC", "Thu 2026-10-15 00:00 UTC"},
		},
		"EndOfALeapYear": {
			reason:   "Go misplaces the end of that day's period, and a search that trusts it never ends",
			schedule: "59 * 30,31 12 *", zone: "America/New_York", from: "2060-12-31 21:59",
			want: []string{"Fri 2060-12-31 22:59 EST", "Fri 2060-12-31 23:59 EST", "Fri 2061-12-30 00:59 EST"},
		},
		"LongSteps": {
			reason:   "a step beyond the field is its beginning: this is no rule for 90 minutes",
			schedule: "*/90 * * * *", zone: "UTC", from: "2026-03-01 11:50",
			want: []string{"Sun 2026-03-01 12:00 UTC", "Sun 2026-03-01 13:00 UTC"},
		},
		"Interval": {
			reason:   "alone, it counts from where it is asked, to the second",
			schedule: "@every 1h30m", zone: "UTC", from: "2026-03-01 23:00:30",
			want: []string{"Mon 2026-03-02 00:30 UTC", "Mon 2026-03-02 02:00 UTC"},
		},
	})
}

func TestNextInWhoseZone(t *testing.T) {
	s := parsed(t, "0 9 * * *", "Asia/Tokyo")
	got := s.Next(on(t, "2026-03-01 12:00", "America/New_York"))
	require.Equal(t, "Sun 2026-03-01 19:00 EST", got.Format(clock), "09:00 in Tokyo, shown where it was asked")
}

func TestNextOfFractions(t *testing.T) {
	s := parsed(t, "0 9 * * *", "")
	nine := utc(t, "2026-03-01 09:00")
	require.Equal(t, nine, s.Next(nine.Add(-1)))
	require.Equal(t, nine.AddDate(0, 0, 1), s.Next(nine))
	require.Equal(t, nine.AddDate(0, 0, 1), s.Next(nine.Add(1)))
}

func TestEndsOfTime(t *testing.T) {
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
