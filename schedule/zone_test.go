package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each time of day comes once a day, also on the days when clocks are set forward.
func TestScheduleNextClockSetForward(t *testing.T) {
	runNext(t, map[string]nextCase{
		"Berlin": {
			reason:   "02:30 is skipped, and comes at 03:00.",
			schedule: "30 2 * * *", zone: "Europe/Berlin", from: "2026-03-28 00:00",
			want: []string{"Sat 2026-03-28 02:30 CET", "Sun 2026-03-29 03:00 CEST", "Mon 2026-03-30 02:30 CEST"},
		},
		"NewYork": {
			reason:   "The same, three weeks earlier.",
			schedule: "30 2 * * *", zone: "America/New_York", from: "2026-03-07 12:00",
			want: []string{"Sun 2026-03-08 03:00 EDT", "Mon 2026-03-09 02:30 EDT"},
		},
		"LordHowe": {
			reason:   "Half an hour is skipped, from 02:00 to 02:30.",
			schedule: "15 2 * * *", zone: "Australia/Lord_Howe", from: "2026-10-03 12:00",
			want: []string{"Sun 2026-10-04 02:30 +11", "Mon 2026-10-05 02:15 +11"},
		},
		"SaoPaulo": {
			reason:   "Midnight is skipped, and the day still has its run.",
			schedule: "@daily", zone: "America/Sao_Paulo", from: "2018-11-03 12:00",
			want: []string{"Sun 2018-11-04 01:00 -02", "Mon 2018-11-05 00:00 -02"},
		},
		"Beirut": {
			reason:   "Midnight is skipped on the only matching weekday.",
			schedule: "0 0 * * SUN", zone: "Asia/Beirut", from: "2025-03-29 12:00",
			want: []string{"Sun 2025-03-30 01:00 EEST", "Sun 2025-04-06 00:00 EEST"},
		},
		"Several": {
			reason:   "Several skipped times come once, together with the time that comes then anyway.",
			schedule: "*/20 2-3 * * *", zone: "Europe/Berlin", from: "2026-03-29 00:00",
			want: []string{"Sun 2026-03-29 03:00 CEST", "Sun 2026-03-29 03:20 CEST", "Sun 2026-03-29 03:40 CEST", "Mon 2026-03-30 02:00 CEST"},
		},
		"EverySecondHour": {
			reason:   "Hours with a step are times of day.",
			schedule: "0 */2 * * *", zone: "Europe/Berlin", from: "2026-03-28 23:00",
			want: []string{"Sun 2026-03-29 00:00 CET", "Sun 2026-03-29 03:00 CEST", "Sun 2026-03-29 04:00 CEST"},
		},
		"EveryHour": {
			reason:   "An hour elapses between two runs.",
			schedule: "30 * * * *", zone: "Europe/Berlin", from: "2026-03-29 01:00",
			want: []string{"Sun 2026-03-29 01:30 CET", "Sun 2026-03-29 03:30 CEST", "Sun 2026-03-29 04:30 CEST"},
		},
		"EveryHourAllSpelled": {
			reason:   "The meaning of the field counts, not how it is written.",
			schedule: "30 0-23 * * *", zone: "Europe/Berlin", from: "2026-03-29 01:00",
			want: []string{"Sun 2026-03-29 01:30 CET", "Sun 2026-03-29 03:30 CEST"},
		},
		"Apia": {
			reason:   "A whole day, December 30th, is skipped; its run comes when the next day begins.",
			schedule: "0 12 * * *", zone: "Pacific/Apia", from: "2011-12-29 00:00",
			want: []string{"Thu 2011-12-29 12:00 -10", "Sat 2011-12-31 00:00 +14", "Sat 2011-12-31 12:00 +14"},
		},
		"ApiaEveryHour": {
			reason:   "An hour elapses there too.",
			schedule: "0 * * * *", zone: "Pacific/Apia", from: "2011-12-29 22:30",
			want: []string{"Thu 2011-12-29 23:00 -10", "Sat 2011-12-31 00:00 +14"},
		},
	})
}

func TestScheduleNextClockSetBack(t *testing.T) {
	runNext(t, map[string]nextCase{
		"Berlin": {
			reason:   "02:30 occurs twice, and comes the first time.",
			schedule: "30 2 * * *", zone: "Europe/Berlin", from: "2026-10-24 12:00",
			want: []string{"Sun 2026-10-25 02:30 CEST", "Mon 2026-10-26 02:30 CET"},
		},
		"NewYork": {
			reason:   "01:30 occurs twice.",
			schedule: "30 1 * * *", zone: "America/New_York", from: "2026-10-31 12:00",
			want: []string{"Sun 2026-11-01 01:30 EDT", "Mon 2026-11-02 01:30 EST"},
		},
		"LordHowe": {
			reason:   "Half an hour occurs twice, from 01:30 to 02:00.",
			schedule: "0,45 1 * * *", zone: "Australia/Lord_Howe", from: "2026-04-04 12:00",
			want: []string{"Sun 2026-04-05 01:00 +11", "Sun 2026-04-05 01:45 +11", "Mon 2026-04-06 01:00 +1030"},
		},
		"SaoPaulo": {
			reason:   "The hour before midnight occurs twice, and the day changes once.",
			schedule: "0 0,23 * * *", zone: "America/Sao_Paulo", from: "2018-02-17 12:00",
			want: []string{"Sat 2018-02-17 23:00 -02", "Sun 2018-02-18 00:00 -03", "Sun 2018-02-18 23:00 -03"},
		},
		"Beirut": {
			reason:   "The hour before midnight occurs twice.",
			schedule: "30 23 * * *", zone: "Asia/Beirut", from: "2025-10-25 12:00",
			want: []string{"Sat 2025-10-25 23:30 EEST", "Sun 2025-10-26 23:30 EET"},
		},
		"Several": {
			reason:   "Times of day do not come again while the clock repeats an hour.",
			schedule: "*/30 1-3 * * *", zone: "Europe/Berlin", from: "2026-10-25 01:30",
			want: []string{"Sun 2026-10-25 02:00 CEST", "Sun 2026-10-25 02:30 CEST", "Sun 2026-10-25 03:00 CET"},
		},
		"EveryHalfHour": {
			reason:   "A schedule for every hour comes again in the repeated hour.",
			schedule: "*/30 * * * *", zone: "Europe/Berlin", from: "2026-10-25 01:30",
			want: []string{
				"Sun 2026-10-25 02:00 CEST", "Sun 2026-10-25 02:30 CEST",
				"Sun 2026-10-25 02:00 CET", "Sun 2026-10-25 02:30 CET", "Sun 2026-10-25 03:00 CET",
			},
		},
		"Kwajalein": {
			reason:   "A whole day, August 21st 1993, is skipped; its run comes when Sunday begins.",
			schedule: "0 6 * * *", zone: "Pacific/Kwajalein", from: "1993-08-20 00:00",
			want: []string{"Fri 1993-08-20 06:00 -12", "Sun 1993-08-22 00:00 +12", "Sun 1993-08-22 06:00 +12"},
		},
		"Manila": {
			reason:   "No clock has been set by more than a day.",
			schedule: "0 6 * * *", zone: "Asia/Manila", from: "1844-12-30 00:00",
			want: []string{"Mon 1844-12-30 06:00 LMT", "Wed 1845-01-01 00:00 LMT", "Wed 1845-01-01 06:00 LMT"},
		},
		"Juneau": {
			reason:   "A whole day is repeated: October 18th 1867 occurred twice in Alaska.",
			schedule: "0 6 * * *", zone: "America/Juneau", from: "1867-10-18 00:00",
			want: []string{"Fri 1867-10-18 06:00 LMT", "Sat 1867-10-19 06:00 LMT"},
		},
	})
}

// The argument of Next is in the hour that occurs twice.
func TestScheduleNextFromRepeatedHour(t *testing.T) {
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

// In Alaska this day occurred twice. The argument of Next is in the second occurrence. 06:00 was in the first one, so
// it does not come again.
func TestScheduleNextFromRepeatedDay(t *testing.T) {
	s := parsed(t, "0 6 * * *", "America/Juneau")
	got := next(t, s, utc(t, "1867-10-19 10:00").In(s.Location()), 1)
	require.Equal(t, []string{"Sun 1867-10-20 06:00 LMT"}, got)
}
