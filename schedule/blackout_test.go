package schedule_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestNextOpen(t *testing.T) {
	office := []schedule.BlackoutWindow{{Start: "08:00", End: "18:00", Days: []string{"Mon", "tuesday", "WED", "Thu", "Fri"}}}
	weekend := []schedule.BlackoutWindow{{Start: "00:00", End: "24:00", Days: []string{"Sat", "Sun"}}}
	night := []schedule.BlackoutWindow{{Start: "22:00", End: "06:00"}}
	saturdayNight := []schedule.BlackoutWindow{{Start: "22:00", End: "06:00", Days: []string{"Sat"}}}
	cases := map[string]struct {
		reason  string
		windows []schedule.BlackoutWindow
		zone    string
		at      string
		want    string
	}{
		"None":        {"Without windows every time is open.", nil, "UTC", "2026-03-04 12:00", "Wed 2026-03-04 12:00 UTC"},
		"Before":      {"The time before the start is open.", office, "UTC", "2026-03-04 07:59:59", "Wed 2026-03-04 07:59 UTC"},
		"Start":       {"The start is in the window.", office, "UTC", "2026-03-04 08:00", "Wed 2026-03-04 18:00 UTC"},
		"Last":        {"The last second is in the window.", office, "UTC", "2026-03-04 17:59:59", "Wed 2026-03-04 18:00 UTC"},
		"End":         {"The end is not in the window.", office, "UTC", "2026-03-04 18:00", "Wed 2026-03-04 18:00 UTC"},
		"OtherDay":    {"Other days are open.", office, "UTC", "2026-03-07 12:00", "Sat 2026-03-07 12:00 UTC"},
		"Weekend":     {"Two adjacent days join, over the end of the week.", weekend, "UTC", "2026-03-07 12:00", "Mon 2026-03-09 00:00 UTC"},
		"Evening":     {"The window ends on the next day.", night, "UTC", "2026-03-04 23:00", "Thu 2026-03-05 06:00 UTC"},
		"Morning":     {"The window began on the evening before.", night, "UTC", "2026-03-04 05:00", "Wed 2026-03-04 06:00 UTC"},
		"SundayEarly": {"The day is that of the start, also over the end of the week.", saturdayNight, "UTC", "2026-03-08 05:00", "Sun 2026-03-08 06:00 UTC"},
		"SundayLate":  {"The window does not begin on the next day.", saturdayNight, "UTC", "2026-03-08 23:00", "Sun 2026-03-08 23:00 UTC"},
		"MondayEarly": {"The window does not end on the day after that.", saturdayNight, "UTC", "2026-03-09 05:00", "Mon 2026-03-09 05:00 UTC"},
		"Overlap":     {"Windows that touch or overlap join.", append(night, office[0], schedule.BlackoutWindow{Start: "06:00", End: "09:00"}), "UTC", "2026-03-04 23:00", "Thu 2026-03-05 18:00 UTC"},
		"Spring":      {"The night is an hour shorter.", night, "Europe/Berlin", "2026-03-28 23:00", "Sun 2026-03-29 06:00 CEST"},
		"JumpedOver":  {"A window whose end is skipped ends at the jump.", []schedule.BlackoutWindow{{Start: "01:00", End: "02:30"}}, "Europe/Berlin", "2026-03-29 01:30", "Sun 2026-03-29 03:00 CEST"},
		"JumpedInto":  {"A window whose start is skipped begins at the jump.", []schedule.BlackoutWindow{{Start: "02:30", End: "04:00"}}, "Europe/Berlin", "2026-03-29 03:00", "Sun 2026-03-29 04:00 CEST"},
		"Autumn":      {"The night is an hour longer.", night, "Europe/Berlin", "2026-10-24 23:00", "Sun 2026-10-25 06:00 CET"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := windows(t, tc.zone, tc.windows...).NextOpen(on(t, tc.at, tc.zone))
			require.Equal(t, tc.want, got.Format(clock), tc.reason)
		})
	}
	require.Equal(t, time.Unix(1, 5), schedule.BlackoutWindows{}.NextOpen(time.Unix(1, 5)), "the zero value has no window")
	require.Equal(t, time.Unix(1, 5), windows(t, "", office...).NextOpen(time.Unix(1, 5)), "an open time is returned unchanged")
}

func TestNextOpenRepeatedHour(t *testing.T) {
	quarterPastTwo := utc(t, "2026-10-25 00:15").In(on(t, "2026-10-25 00:15", "Europe/Berlin").Location())
	require.Equal(t, "Sun 2026-10-25 02:15 CEST", quarterPastTwo.Format(clock))
	for end, want := range map[string]string{
		"02:30": "Sun 2026-10-25 02:30 CEST", // 02:30 CET is in the window again
		"03:00": "Sun 2026-10-25 03:00 CET",  // the clock is set back to 02:00, which is in the window
	} {
		w := windows(t, "Europe/Berlin", schedule.BlackoutWindow{Start: "02:00", End: end})
		require.Equal(t, want, w.NextOpen(quarterPastTwo).Format(clock))
	}
}

func TestNextOpenLocation(t *testing.T) {
	w := windows(t, "Asia/Tokyo", schedule.BlackoutWindow{Start: "09:00", End: "10:00"})
	require.Equal(t, "Wed 2026-03-04 02:00 CET", w.NextOpen(on(t, "2026-03-04 01:30", "Europe/Berlin")).Format(clock))
}

// TestNextOpenEachMinute compares NextOpen with each minute of two weeks in which clocks are set forward or
// back.
func TestNextOpenEachMinute(t *testing.T) {
	for _, date := range []string{"2026-03-22 00:00", "2026-10-18 00:00"} {
		w := windows(t, "Europe/Berlin",
			schedule.BlackoutWindow{Start: "01:15", End: "02:45"},
			schedule.BlackoutWindow{Start: "23:00", End: "00:30", Days: []string{"Fri", "Sat"}},
			schedule.BlackoutWindow{Start: "03:00", End: "02:00", Days: []string{"Wed"}})
		begin := on(t, date, "Europe/Berlin")
		at := begin.AddDate(0, 0, 14).Add(12 * time.Hour)
		for want := at; !at.Before(begin); at = at.Add(-time.Minute) {
			if !isClosed(at) {
				want = at
			}
			if got := w.NextOpen(at); !got.Equal(want) {
				t.Fatalf("at %v: want %v, got %v", at, want, got)
			}
		}
	}
}

func isClosed(at time.Time) bool {
	hour, minute, _ := at.Clock()
	now, day := hour*60+minute, at.Weekday()
	switch {
	case now >= 75 && now < 165:
		return true
	case day == time.Friday && now >= 23*60, day == time.Saturday && (now < 30 || now >= 23*60), day == time.Sunday && now < 30:
		return true
	}
	return day == time.Wednesday && now >= 3*60 || day == time.Thursday && now < 2*60
}

func TestParseBlackoutWindowsInvalid(t *testing.T) {
	fine := schedule.BlackoutWindow{Start: "01:00", End: "02:00"}
	week := "blackoutWindows: they cover the whole week, so nothing would ever start; leave some time open"
	cases := map[string]struct {
		reason  string
		windows []schedule.BlackoutWindow
		want    string
	}{
		"Start":    {"It is not a time.", []schedule.BlackoutWindow{fine, {Start: "25:00", End: "02:00"}}, `blackoutWindows[1].start "25:00": it is not a time of day; write HH:MM, from 00:00 to 23:59`},
		"Start24":  {"A window cannot begin at the end of a day.", []schedule.BlackoutWindow{{Start: "24:00", End: "02:00"}}, `blackoutWindows[0].start "24:00": it is not a time of day; write HH:MM, from 00:00 to 23:59`},
		"Short":    {"Hours have two digits.", []schedule.BlackoutWindow{{Start: "9:00", End: "10:00"}}, `blackoutWindows[0].start "9:00": it is not a time of day; write HH:MM, from 00:00 to 23:59`},
		"Missing":  {"Start and end are required.", []schedule.BlackoutWindow{{Start: "09:00"}}, `blackoutWindows[0].end "": it is not a time of day; write HH:MM, from 00:00 to 24:00`},
		"Seconds":  {"Seconds are not allowed.", []schedule.BlackoutWindow{{Start: "09:00", End: "10:00:00"}}, `blackoutWindows[0].end "10:00:00": it is not a time of day; write HH:MM, from 00:00 to 24:00`},
		"TenK":     {"A long value is cut.", []schedule.BlackoutWindow{{Start: strings.Repeat("0", 10000)}}, `blackoutWindows[0].start "` + strings.Repeat("0", 60) + `"…: it is not a time of day; write HH:MM, from 00:00 to 23:59`},
		"Nothing":  {"It is unclear whether this means nothing or a day.", []schedule.BlackoutWindow{{Start: "09:00", End: "09:00"}}, `blackoutWindows[0].end "09:00": it equals start; for a whole day write 00:00 and 24:00`},
		"Day":      {"It is not a day.", []schedule.BlackoutWindow{{Start: "09:00", End: "10:00", Days: []string{"Mon", "Mo"}}}, `blackoutWindows[0].days[1] "Mo": it is not a day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		"Week":     {"One window covers the week.", []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}}, week},
		"Together": {"Several windows cover the week.", []schedule.BlackoutWindow{{Start: "18:00", End: "06:00"}, {Start: "12:00", End: "18:00"}, {Start: "05:00", End: "13:00"}}, week},
		"EachDay": {"Windows of single days cover the week.", []schedule.BlackoutWindow{
			{Start: "12:00", End: "24:00", Days: []string{"Sun"}}, {Start: "00:00", End: "24:00", Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}},
			{Start: "00:00", End: "23:59", Days: []string{"Sat"}}, {Start: "23:00", End: "12:00", Days: []string{"Sat"}},
		}, week},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.ParseBlackoutWindows("", tc.windows...)
			require.ErrorAs(t, err, new(*schedule.Error), tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
		})
	}
	_, err := schedule.ParseBlackoutWindows("Mars/Base", fine)
	require.ErrorContains(t, err, `invalid timeZone "Mars/Base"`)
	_, err = schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "00:00", End: "23:59"})
	require.NoError(t, err, "a minute a day may stay open")
}

// FuzzParseBlackoutWindows proves that windows are refused, or leave a time open within about a week.
func FuzzParseBlackoutWindows(f *testing.F) {
	f.Fuzz(func(t *testing.T, start, end, day, otherStart, otherEnd, zone string, from int64) {
		w, err := schedule.ParseBlackoutWindows(zone,
			schedule.BlackoutWindow{Start: start, End: end, Days: []string{day}}, schedule.BlackoutWindow{Start: otherStart, End: otherEnd})
		if err != nil {
			require.ErrorAs(t, err, new(*schedule.Error))
			require.True(t, utf8.ValidString(err.Error()) && len(err.Error()) < 2000)
			return
		}
		at := time.Unix(from%(1<<34), 0)
		open := w.NextOpen(at)
		require.False(t, open.Before(at))
		require.Less(t, open.Sub(at), 9*24*time.Hour)
		require.Equal(t, open, w.NextOpen(open))
	})
}
