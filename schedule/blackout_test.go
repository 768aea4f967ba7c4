package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func windows(t testing.TB, zone string, w ...schedule.BlackoutWindow) schedule.BlackoutWindows {
	t.Helper()
	parsed, err := schedule.ParseBlackoutWindows(zone, w...)
	require.NoError(t, err)
	return parsed
}

func TestOpen(t *testing.T) {
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
		"None":        {"none is always open", nil, "UTC", "2026-03-04 12:00", "Wed 2026-03-04 12:00 UTC"},
		"Before":      {"open until the first minute", office, "UTC", "2026-03-04 07:59:59", "Wed 2026-03-04 07:59 UTC"},
		"Start":       {"the start belongs to it", office, "UTC", "2026-03-04 08:00", "Wed 2026-03-04 18:00 UTC"},
		"Last":        {"the last second too", office, "UTC", "2026-03-04 17:59:59", "Wed 2026-03-04 18:00 UTC"},
		"End":         {"the end does not", office, "UTC", "2026-03-04 18:00", "Wed 2026-03-04 18:00 UTC"},
		"OtherDay":    {"days that are not named are open", office, "UTC", "2026-03-07 12:00", "Sat 2026-03-07 12:00 UTC"},
		"Weekend":     {"two days are one time, over the end of the week", weekend, "UTC", "2026-03-07 12:00", "Mon 2026-03-09 00:00 UTC"},
		"Evening":     {"past midnight", night, "UTC", "2026-03-04 23:00", "Thu 2026-03-05 06:00 UTC"},
		"Morning":     {"from the evening before", night, "UTC", "2026-03-04 05:00", "Wed 2026-03-04 06:00 UTC"},
		"SundayEarly": {"the day is that of the start, also over the end of the week", saturdayNight, "UTC", "2026-03-08 05:00", "Sun 2026-03-08 06:00 UTC"},
		"SundayLate":  {"and of no other", saturdayNight, "UTC", "2026-03-08 23:00", "Sun 2026-03-08 23:00 UTC"},
		"MondayEarly": {"nor the morning after that", saturdayNight, "UTC", "2026-03-09 05:00", "Mon 2026-03-09 05:00 UTC"},
		"Overlap":     {"what touches or overlaps is one", append(night, office[0], schedule.BlackoutWindow{Start: "06:00", End: "09:00"}), "UTC", "2026-03-04 23:00", "Thu 2026-03-05 18:00 UTC"},
		"Spring":      {"the night is an hour shorter", night, "Europe/Berlin", "2026-03-28 23:00", "Sun 2026-03-29 06:00 CEST"},
		"JumpedOver":  {"a window that the clock jumps out of ends there", []schedule.BlackoutWindow{{Start: "01:00", End: "02:30"}}, "Europe/Berlin", "2026-03-29 01:30", "Sun 2026-03-29 03:00 CEST"},
		"JumpedInto":  {"one that it jumps into begins there", []schedule.BlackoutWindow{{Start: "02:30", End: "04:00"}}, "Europe/Berlin", "2026-03-29 03:00", "Sun 2026-03-29 04:00 CEST"},
		"Autumn":      {"the night is an hour longer", night, "Europe/Berlin", "2026-10-24 23:00", "Sun 2026-10-25 06:00 CET"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := windows(t, tc.zone, tc.windows...).Open(on(t, tc.at, tc.zone))
			require.Equal(t, tc.want, got.Format(clock), tc.reason)
		})
	}
	require.Equal(t, time.Unix(1, 5), schedule.BlackoutWindows{}.Open(time.Unix(1, 5)), "the zero value is no window")
	require.Equal(t, time.Unix(1, 5), windows(t, "", office...).Open(time.Unix(1, 5)), "an open moment is given back as it is")
}

func TestOpenInTheRepeatedHour(t *testing.T) {
	quarterPastTwo := utc(t, "2026-10-25 00:15").In(on(t, "2026-10-25 00:15", "Europe/Berlin").Location())
	require.Equal(t, "Sun 2026-10-25 02:15 CEST", quarterPastTwo.Format(clock))
	for end, want := range map[string]string{
		"02:30": "Sun 2026-10-25 02:30 CEST", // and closed again at 02:00 CET
		"03:00": "Sun 2026-10-25 03:00 CET",  // the clock is set back into it
	} {
		w := windows(t, "Europe/Berlin", schedule.BlackoutWindow{Start: "02:00", End: end})
		require.Equal(t, want, w.Open(quarterPastTwo).Format(clock))
	}
}

func TestOpenWhoseZone(t *testing.T) {
	w := windows(t, "Asia/Tokyo", schedule.BlackoutWindow{Start: "09:00", End: "10:00"})
	require.Equal(t, "Wed 2026-03-04 02:00 CET", w.Open(on(t, "2026-03-04 01:30", "Europe/Berlin")).Format(clock))
}

// Each minute of two weeks in which the clock is set: Open is the first minute that is in no window.
func TestOpenByWalking(t *testing.T) {
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
			if got := w.Open(at); !got.Equal(want) {
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

func TestParseWindowsRefuses(t *testing.T) {
	fine := schedule.BlackoutWindow{Start: "01:00", End: "02:00"}
	week := "blackoutWindows: they cover the whole week, so nothing would ever start; leave some time open"
	cases := map[string]struct {
		reason  string
		windows []schedule.BlackoutWindow
		want    string
	}{
		"Start":    {"no time", []schedule.BlackoutWindow{fine, {Start: "25:00", End: "02:00"}}, `blackoutWindows[1].start "25:00": it is no time of day; write HH:MM, from 00:00 to 23:59`},
		"Start24":  {"no day begins at its end", []schedule.BlackoutWindow{{Start: "24:00", End: "02:00"}}, `blackoutWindows[0].start "24:00": it is no time of day; write HH:MM, from 00:00 to 23:59`},
		"Short":    {"one spelling", []schedule.BlackoutWindow{{Start: "9:00", End: "10:00"}}, `blackoutWindows[0].start "9:00": it is no time of day; write HH:MM, from 00:00 to 23:59`},
		"Missing":  {"both are needed", []schedule.BlackoutWindow{{Start: "09:00"}}, `blackoutWindows[0].end "": it is no time of day; write HH:MM, from 00:00 to 24:00`},
		"Seconds":  {"minutes are enough", []schedule.BlackoutWindow{{Start: "09:00", End: "10:00:00"}}, `blackoutWindows[0].end "10:00:00": it is no time of day; write HH:MM, from 00:00 to 24:00`},
		"TenK":     {"what is shown is cut", []schedule.BlackoutWindow{{Start: strings.Repeat("0", 10000)}}, `blackoutWindows[0].start "` + strings.Repeat("0", 60) + `"…: it is no time of day; write HH:MM, from 00:00 to 23:59`},
		"Nothing":  {"nothing, or a day?", []schedule.BlackoutWindow{{Start: "09:00", End: "09:00"}}, `blackoutWindows[0].end "09:00": it is the start as well; for a whole day write 00:00 and 24:00`},
		"Day":      {"no day", []schedule.BlackoutWindow{{Start: "09:00", End: "10:00", Days: []string{"Mon", "Mo"}}}, `blackoutWindows[0].days[1] "Mo": it is no day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		"Week":     {"one that is everything", []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}}, week},
		"Together": {"several that are", []schedule.BlackoutWindow{{Start: "18:00", End: "06:00"}, {Start: "12:00", End: "18:00"}, {Start: "05:00", End: "13:00"}}, week},
		"EachDay": {"day by day", []schedule.BlackoutWindow{
			{Start: "12:00", End: "24:00", Days: []string{"Sun"}}, {Start: "00:00", End: "24:00", Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}},
			{Start: "00:00", End: "23:59", Days: []string{"Sat"}}, {Start: "23:00", End: "12:00", Days: []string{"Sat"}},
		}, week},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.ParseBlackoutWindows("", tc.windows...)
			require.ErrorIs(t, err, schedule.ErrInvalid, tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
		})
	}
	_, err := schedule.ParseBlackoutWindows("Mars/Base", fine)
	require.ErrorContains(t, err, `invalid timeZone "Mars/Base"`)
	_, err = schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "00:00", End: "23:59"})
	require.NoError(t, err, "a minute a day is enough")
}
