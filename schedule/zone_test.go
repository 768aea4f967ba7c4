package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every time of day comes once a day, on the days when the clock is set too.
func TestClockSetForward(t *testing.T) {
	read(t, map[string]page{
		"Berlin": {
			reason:   "02:30 is jumped over, and comes when the clock shows 03:00",
			schedule: "30 2 * * *", zone: "Europe/Berlin", from: "2026-03-28 00:00",
			want: []string{"Sat 2026-03-28 02:30 CET", "Sun 2026-03-29 03:00 CEST", "Mon 2026-03-30 02:30 CEST"},
		},
		"NewYork": {
			reason:   "the same, three weeks earlier",
			schedule: "30 2 * * *", zone: "America/New_York", from: "2026-03-07 12:00",
			want: []string{"Sun 2026-03-08 03:00 EDT", "Mon 2026-03-09 02:30 EDT"},
		},
		"LordHowe": {
			reason:   "half an hour is jumped over, from 02:00 to 02:30",
			schedule: "15 2 * * *", zone: "Australia/Lord_Howe", from: "2026-10-03 12:00",
			want: []string{"Sun 2026-10-04 02:30 +11", "Mon 2026-10-05 02:15 +11"},
		},
		"SaoPaulo": {
			reason:   "midnight is jumped over, and the day still has its run",
			schedule: "@daily", zone: "America/Sao_Paulo", from: "2018-11-03 12:00",
			want: []string{"Sun 2018-11-04 01:00 -02", "Mon 2018-11-05 00:00 -02"},
		},
		"Beirut": {
			reason:   "midnight again, and only on that weekday",
			schedule: "0 0 * * SUN", zone: "Asia/Beirut", from: "2025-03-29 12:00",
			want: []string{"Sun 2025-03-30 01:00 EEST", "Sun 2025-04-06 00:00 EEST"},
		},
		"Several": {
			reason:   "what is jumped over comes once, as one with what comes then anyway",
			schedule: "*/20 2-3 * * *", zone: "Europe/Berlin", from: "2026-03-29 00:00",
			want: []string{"Sun 2026-03-29 03:00 CEST", "Sun 2026-03-29 03:20 CEST", "Sun 2026-03-29 03:40 CEST", "Mon 2026-03-30 02:00 CEST"},
		},
		"EverySecondHour": {
			reason:   "hours with a step are times of day",
			schedule: "0 */2 * * *", zone: "Europe/Berlin", from: "2026-03-28 23:00",
			want: []string{"Sun 2026-03-29 00:00 CET", "Sun 2026-03-29 03:00 CEST", "Sun 2026-03-29 04:00 CEST"},
		},
		"EveryHour": {
			reason:   "an hour of real time lies between two runs",
			schedule: "30 * * * *", zone: "Europe/Berlin", from: "2026-03-29 01:00",
			want: []string{"Sun 2026-03-29 01:30 CET", "Sun 2026-03-29 03:30 CEST", "Sun 2026-03-29 04:30 CEST"},
		},
		"EveryHourAllSpelled": {
			reason:   "what counts is what the field means, not how it is written",
			schedule: "30 0-23 * * *", zone: "Europe/Berlin", from: "2026-03-29 01:00",
			want: []string{"Sun 2026-03-29 01:30 CET", "Sun 2026-03-29 03:30 CEST"},
		},
		"Apia": {
			reason:   "a whole day is jumped over, December 30th; its run comes when the next day begins",
			schedule: "0 12 * * *", zone: "Pacific/Apia", from: "2011-12-29 00:00",
			want: []string{"Thu 2011-12-29 12:00 -10", "Sat 2011-12-31 00:00 +14", "Sat 2011-12-31 12:00 +14"},
		},
		"ApiaEveryHour": {
			reason:   "an hour of real time there too",
			schedule: "0 * * * *", zone: "Pacific/Apia", from: "2011-12-29 22:30",
			want: []string{"Thu 2011-12-29 23:00 -10", "Sat 2011-12-31 00:00 +14"},
		},
	})
}

func TestClockSetBack(t *testing.T) {
	read(t, map[string]page{
		"Berlin": {
			reason:   "02:30 is shown twice, and comes the first time",
			schedule: "30 2 * * *", zone: "Europe/Berlin", from: "2026-10-24 12:00",
			want: []string{"Sun 2026-10-25 02:30 CEST", "Mon 2026-10-26 02:30 CET"},
		},
		"NewYork": {
			reason:   "01:30 is shown twice",
			schedule: "30 1 * * *", zone: "America/New_York", from: "2026-10-31 12:00",
			want: []string{"Sun 2026-11-01 01:30 EDT", "Mon 2026-11-02 01:30 EST"},
		},
		"LordHowe": {
			reason:   "half an hour is shown twice, from 01:30 to 02:00",
			schedule: "0,45 1 * * *", zone: "Australia/Lord_Howe", from: "2026-04-04 12:00",
			want: []string{"Sun 2026-04-05 01:00 +11", "Sun 2026-04-05 01:45 +11", "Mon 2026-04-06 01:00 +1030"},
		},
		"SaoPaulo": {
			reason:   "an hour before midnight is shown twice, and the day changes once",
			schedule: "0 0,23 * * *", zone: "America/Sao_Paulo", from: "2018-02-17 12:00",
			want: []string{"Sat 2018-02-17 23:00 -02", "Sun 2018-02-18 00:00 -03", "Sun 2018-02-18 23:00 -03"},
		},
		"Beirut": {
			reason:   "the same",
			schedule: "30 23 * * *", zone: "Asia/Beirut", from: "2025-10-25 12:00",
			want: []string{"Sat 2025-10-25 23:30 EEST", "Sun 2025-10-26 23:30 EET"},
		},
		"Several": {
			reason:   "times of day pause while the clock repeats itself",
			schedule: "*/30 1-3 * * *", zone: "Europe/Berlin", from: "2026-10-25 01:30",
			want: []string{"Sun 2026-10-25 02:00 CEST", "Sun 2026-10-25 02:30 CEST", "Sun 2026-10-25 03:00 CET"},
		},
		"EveryHalfHour": {
			reason:   "a schedule of every hour does not",
			schedule: "*/30 * * * *", zone: "Europe/Berlin", from: "2026-10-25 01:30",
			want: []string{
				"Sun 2026-10-25 02:00 CEST", "Sun 2026-10-25 02:30 CEST",
				"Sun 2026-10-25 02:00 CET", "Sun 2026-10-25 02:30 CET", "Sun 2026-10-25 03:00 CET",
			},
		},
		"Kwajalein": {
			reason:   "a whole day, August 21st of 1993, is jumped over from Friday's end; its run comes as Sunday begins",
			schedule: "0 6 * * *", zone: "Pacific/Kwajalein", from: "1993-08-20 00:00",
			want: []string{"Fri 1993-08-20 06:00 -12", "Sun 1993-08-22 00:00 +12", "Sun 1993-08-22 06:00 +12"},
		},
		"Manila": {
			reason:   "no zone has been set further than a day",
			schedule: "0 6 * * *", zone: "Asia/Manila", from: "1844-12-30 00:00",
			want: []string{"Mon 1844-12-30 06:00 LMT", "Wed 1845-01-01 00:00 LMT", "Wed 1845-01-01 06:00 LMT"},
		},
		"Juneau": {
			reason:   "a day is repeated: October 18th of 1867 came twice in Alaska",
			schedule: "0 6 * * *", zone: "America/Juneau", from: "1867-10-18 00:00",
			want: []string{"Fri 1867-10-18 06:00 LMT", "Sat 1867-10-19 06:00 LMT"},
		},
	})
}

// The moment at which a search begins lies in the hour that the clock shows twice.
func TestFromWithinTheRepeatedHour(t *testing.T) {
	second := on(t, "2026-10-25 03:30", "Europe/Berlin").Add(-time.Hour)
	require.Equal(t, "Sun 2026-10-25 02:30 CET", second.Format(clock))
	for schedule, want := range map[string]string{
		"45 2 * * *": "Mon 2026-10-26 02:45 CET",
		"45 * * * *": "Sun 2026-10-25 02:45 CET",
		"0 3 * * *":  "Sun 2026-10-25 03:00 CET",
	} {
		s := parsed(t, schedule, "Europe/Berlin")
		if got := s.Next(second).Format(clock); got != want {
			t.Errorf("%s after %s: want %s, got %s", schedule, second.Format(clock), want, got)
		}
	}
}

// In Alaska, a whole day was shown twice: half of it later, the day before is over, and the next morning has been.
func TestFromWithinARepeatedDay(t *testing.T) {
	s := parsed(t, "0 6 * * *", "America/Juneau")
	got := next(t, s, utc(t, "1867-10-19 10:00").In(s.Location()), 1)
	require.Equal(t, []string{"Sun 1867-10-20 06:00 LMT"}, got)
}
