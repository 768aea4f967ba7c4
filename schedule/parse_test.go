package schedule_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason   string
		schedule string
		zone     string
		want     string
		wantZone string
	}{
		"Fields":     {"The text is kept.", "0 4 * * *", "Europe/Berlin", "0 4 * * *", "Europe/Berlin"},
		"Spaces":     {"YAML may leave line ends and indentation.", "  0  4 *\t* *\n", "", "0 4 * * *", "UTC"},
		"Names":      {"Names may be in any case.", "0 4 * jan-MAR Mon,fri", "UTC", "0 4 * jan-MAR Mon,fri", "UTC"},
		"Question":   {"A question mark is a star.", "0 4 ? * ?", "", "0 4 ? * ?", "UTC"},
		"Descriptor": {"A descriptor of robfig/cron.", "@midnight", "Asia/Kathmandu", "@midnight", "Asia/Kathmandu"},
		"Every":      {"A duration as in Go.", "@every  90m", "", "@every 90m", "UTC"},
		"Half":       {"Half an hour is a number of whole seconds.", "@every 0.5h", "", "@every 0.5h", "UTC"},
		"Longest":    {"All values of all fields are listed.", strings.Join(everything(), " "), "", strings.Join(everything(), " "), "UTC"},
		"LeapDay":    {"It comes, though not every year.", "0 0 29 2 *", "", "0 0 29 2 *", "UTC"},
		"Rescued":    {"The 30th of February never comes, but the Mondays do.", "0 0 30 2 MON", "", "0 0 30 2 MON", "UTC"},
		"Offset":     {"The database has zones without a place.", "@daily", "Etc/GMT+5", "@daily", "Etc/GMT+5"},
		"OldName":    {"The database has old names.", "@daily", "US/Eastern", "@daily", "US/Eastern"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.Parse(tc.schedule, tc.zone)
			require.NoError(t, err, tc.reason)
			require.Equal(t, tc.want, s.String(), tc.reason)
			require.Equal(t, tc.wantZone, s.Location().String(), tc.reason)
			again := parsed(t, s.String(), s.Location().String())
			require.Equal(t, s, again, "parsing the result of String")
		})
	}
}

// everything returns the longest useful schedule, as its fields.
func everything() []string {
	list := func(from, to string, all string) string {
		values := strings.Split(all, ",")
		return strings.Join(values[indexOf(values, from):indexOf(values, to)+1], ",")
	}
	numbers := "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38," +
		"39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59"
	return []string{
		list("0", "59", numbers), list("0", "23", numbers), list("1", "31", numbers),
		"JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC", "SUN,MON,TUE,WED,THU,FRI,SAT",
	}
}

func indexOf(values []string, value string) int {
	for i, v := range values {
		if v == value {
			return i
		}
	}
	return -1
}

func TestParseInvalid(t *testing.T) {
	const (
		list    = ", as list (a,b), range (a-b) or with a step (*/n)"
		aZone   = "it must not contain a time zone; write the time zone in its own field, timeZone"
		seconds = "write five: minute, hour, day of month, month, day of week; there is no field for seconds or years: " +
			"for less than a minute write @every 30s"
		interval = "is not an interval; write whole seconds, minutes and hours, at least 1s, such as @every 1h30m"
		never    = "it never comes: no month that it names has that day; April, June, September and November have 30 days, " +
			"February has 29 at most"
		foreign = "it has a character that is not allowed; write ASCII letters and digits, spaces, and * , - / @"
		known   = "write @hourly, @daily, @weekly, @monthly, @yearly, or @every 1h30m"
		place   = `there is no such zone; write a name of the IANA database, such as "Europe/Berlin" or "UTC"`
	)
	cases := map[string]struct {
		reason   string
		schedule string
		zone     string
		want     string
	}{
		"Empty":     {"The text is empty.", "", "", `schedule "": it is empty; write five fields, such as "0 4 * * *", or @daily`},
		"Blank":     {"The text has only spaces.", " \n", "", `schedule " \n": it is empty; write five fields, such as "0 4 * * *", or @daily`},
		"OnlyZone":  {"robfig/cron panics.", "TZ=UTC", "", `schedule "TZ=UTC": ` + aZone},
		"OnlyZone2": {"robfig/cron panics.", "CRON_TZ=UTC", "", `schedule "CRON_TZ=UTC": ` + aZone},
		"NoZone":    {"robfig/cron panics.", "TZ=", "", `schedule "TZ=": ` + aZone},
		"Zone":      {"CronJob refuses it too.", "TZ=Asia/Tokyo 0 4 * * *", "", `schedule "TZ=Asia/Tokyo 0 4 * * *": ` + aZone},
		"CronZone":  {"The other form, after a space.", " CRON_TZ=UTC @daily", "", `schedule " CRON_TZ=UTC @daily": ` + aZone},
		"Seconds":   {"Six fields.", "0 0 4 * * *", "", `schedule "0 0 4 * * *": it has 6 fields; ` + seconds},
		"Years":     {"Seven fields.", "0 0 4 * * * *", "", `schedule "0 0 4 * * * *": it has 7 fields; ` + seconds},
		"Four":      {"Four fields.", "0 4 * *", "", `schedule "0 4 * *": it has 4 fields; write five: minute, hour, day of month, month, day of week`},
		"Words":     {"It is not a schedule.", "tomorrow", "", `schedule "tomorrow": it has 1 fields; write five: minute, hour, day of month, month, day of week`},
		"Minute":    {"The value is out of range.", "60 4 * * *", "", `schedule "60 4 * * *": minute "60": "60" is out of range; write *, or 0 to 59` + list},
		"Hour":      {"The value is out of range.", "0 24 * * *", "", `schedule "0 24 * * *": hour "24": "24" is out of range; write *, or 0 to 23` + list},
		"DayZero":   {"Days count from 1.", "0 0 0 * *", "", `schedule "0 0 0 * *": day of month "0": "0" is out of range; write *, or 1 to 31` + list},
		"Month":     {"It is not the name of a month.", "0 0 1 MAI *", "", `schedule "0 0 1 MAI *": month "MAI": "MAI" is neither a number nor a name; write *, or 1 to 12 or JAN to DEC` + list},
		"Sunday7":   {"Vixie's cron accepts 7 for Sunday, robfig/cron and CronJob do not.", "0 0 * * 7", "", `schedule "0 0 * * 7": day of week "7": "7" is out of range; write *, or 0 to 6 or SUN to SAT, where Sunday is 0` + list},
		"Backwards": {"The range is reversed.", "0 0 * * FRI-MON", "", `schedule "0 0 * * FRI-MON": day of week "FRI-MON": the range "FRI-MON" ends before it begins; write *, or 0 to 6 or SUN to SAT, where Sunday is 0` + list},
		"StepZero":  {"The step is zero.", "*/0 * * * *", "", `schedule "*/0 * * * *": minute "*/0": the step "0" is not a number from 1; write *, or 0 to 59` + list},
		"Negative":  {"The value is negative.", "-1 * * * *", "", `schedule "-1 * * * *": minute "-1": a value is missing before or after a hyphen; write *, or 0 to 59` + list},
		"Comma":     {"robfig/cron accepts it, and finds no time.", ", * * * *", "", `schedule ", * * * *": minute ",": a value is missing before or after a comma; write *, or 0 to 59` + list},
		"Commas":    {"robfig/cron accepts it as 1,2.", "1,,2 * * * *", "", `schedule "1,,2 * * * *": minute "1,,2": a value is missing before or after a comma; write *, or 0 to 59` + list},
		"StarRange": {"robfig/cron accepts it as *.", "*-5 * * * *", "", `schedule "*-5 * * * *": minute "*-5": a range cannot begin with a star; write *, or 0 to 59` + list},
		"Never":     {"robfig/cron returns the zero time.", "0 0 30 2 *", "", `schedule "0 0 30 2 *": ` + never},
		"Never31":   {"robfig/cron returns the zero time.", "0 0 31 4,6,9,11 *", "", `schedule "0 0 31 4,6,9,11 *": ` + never},
		"Descr":     {"Descriptors are in lower case only.", "@Daily", "", `schedule "@Daily": "@Daily" is not known; ` + known},
		"Reboot":    {"An operator has no reboot.", "@reboot", "", `schedule "@reboot": "@reboot" is not known; ` + known},
		"EveryBare": {"It is not a duration.", "@every", "", `schedule "@every": "@every" is not known; ` + known},
		"EveryWord": {"It is not a duration.", "@every day", "", `schedule "@every day": "day" ` + interval},
		"EveryNeg":  {"robfig/cron accepts it as a second.", "@every -1h", "", `schedule "@every -1h": "-1h" ` + interval},
		"EveryZero": {"robfig/cron accepts it as a second.", "@every 0", "", `schedule "@every 0": "0" ` + interval},
		"EveryTiny": {"robfig/cron accepts it as a second.", "@every 1ns", "", `schedule "@every 1ns": "1ns" ` + interval},
		"EveryFrac": {"robfig/cron accepts it as a second.", "@every 1500ms", "", `schedule "@every 1500ms": "1500ms" ` + interval},
		"EveryHuge": {"It is longer than a duration can be.", "@every 9999999h", "", `schedule "@every 9999999h": "9999999h" ` + interval},
		"TenK": {
			"A long value is cut.", strings.Repeat("0,", 5000) + "0 * * * *", "",
			`schedule "` + strings.Repeat("0,", 30) + `"…: it has 10009 characters; write at most 512`,
		},
		"Binary":    {"The text is not valid UTF-8.", "\xff\x00", "", `schedule "\xff\x00": ` + foreign},
		"NoBreak":   {"A no-break space, copied from a web page.", "0\u00a04 * * *", "", `schedule "0\u00a04 * * *": ` + foreign},
		"Place":     {"The zone does not exist.", "@daily", "Mars/Base", `timeZone "Mars/Base": ` + place},
		"Shift":     {"It is not a name of the database.", "@daily", "UTC+2", `timeZone "UTC+2": ` + place},
		"Local":     {"It would be the operator's zone.", "@daily", "Local", `timeZone "Local": ` + place},
		"LocalCase": {"It would be the operator's zone.", "@daily", "lOCAL", `timeZone "lOCAL": ` + place},
		"Path":      {"A path cannot leave the database.", "@daily", "../../etc/passwd", `timeZone "../../etc/passwd": ` + place},
		"Root":      {"An absolute path is not a zone.", "@daily", "/etc/localtime", `timeZone "/etc/localtime": ` + place},
		"Folder":    {"It is a folder of the database.", "@daily", "Europe", `timeZone "Europe": ` + place},
		"Right":     {"It counts leap seconds, and exists on some machines only.", "@daily", "right/Europe/Berlin", `timeZone "right/Europe/Berlin": ` + place},
		"Rules":     {"It is a file of the system, and differs between machines.", "@daily", "posixrules", `timeZone "posixrules": ` + place},
		"ZoneSpace": {"Spaces are not trimmed.", "@daily", " UTC", `timeZone " UTC": ` + place},
		"ZoneTenK":  {"A long name is not looked up.", "@daily", strings.Repeat("A/", 5000), `timeZone "` + strings.Repeat("A/", 30) + `"…: ` + place},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.Parse(tc.schedule, tc.zone)
			require.ErrorAs(t, err, new(*schedule.Error), tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
			require.Nil(t, s)
		})
	}
}

// FuzzParse proves that no text makes the parser panic or return a schedule without times, and that the result of
// String can be parsed again. In UTC, where clocks are never set, Parse and robfig/cron lead to the same times.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, zone string, from int64) {
		s, err := schedule.Parse(text, zone)
		if err != nil {
			require.ErrorAs(t, err, new(*schedule.Error))
			require.Nil(t, s)
			require.True(t, utf8.ValidString(err.Error()), "it must be valid as the message of a condition")
			require.Less(t, len(err.Error()), 2000, "for a text of any length")
			requireOwnWords(t, text+zone, err)
			return
		}
		again, err := schedule.Parse(s.String(), s.Location().String())
		require.NoError(t, err)
		require.Equal(t, s, again)

		const years = 60 * 60 * 24 * 365
		at := time.Unix(from%(400*years), 0).In(s.Location())
		for range 3 {
			next := s.Next(at)
			require.True(t, next.After(at), "%s in %s: %v, then %v", s, s.Location(), at, next)
			at = next
		}
		compareWithRobfig(t, s.String(), time.Unix(from%(400*years), 0).UTC())
	})
}

func compareWithRobfig(t *testing.T, text string, at time.Time) {
	t.Helper()
	s := parsed(t, text, "UTC")
	robfig, err := cron.ParseStandard(text)
	require.NoError(t, err)
	for range 3 {
		want := robfig.Next(at)
		if want.IsZero() {
			require.True(t, s.Next(at).After(at.AddDate(4, 0, 0)), "robfig/cron looks only five years ahead")
			return
		}
		require.Equal(t, want, s.Next(at), "%s after %v", text, at)
		at = want
	}
}
