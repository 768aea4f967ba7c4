package schedule_test

import (
	"strings"
	"testing"

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
		"Fields":     {"as it is written", "0 4 * * *", "Europe/Berlin", "0 4 * * *", "Europe/Berlin"},
		"Spaces":     {"YAML leaves line ends and indentation", "  0  4 *\t* *\n", "", "0 4 * * *", "UTC"},
		"Names":      {"in any case", "0 4 * jan-MAR Mon,fri", "UTC", "0 4 * jan-MAR Mon,fri", "UTC"},
		"Question":   {"a question mark is a star", "0 4 ? * ?", "", "0 4 ? * ?", "UTC"},
		"Descriptor": {"robfig's", "@midnight", "Asia/Kathmandu", "@midnight", "Asia/Kathmandu"},
		"Every":      {"a duration of Go", "@every  90m", "", "@every 90m", "UTC"},
		"Half":       {"half an hour is whole seconds", "@every 0.5h", "", "@every 0.5h", "UTC"},
		"Longest":    {"every value by itself", strings.Join(everything(), " "), "", strings.Join(everything(), " "), "UTC"},
		"LeapDay":    {"it comes, though not every year", "0 0 29 2 *", "", "0 0 29 2 *", "UTC"},
		"Rescued":    {"the 30th of February or any Monday of it", "0 0 30 2 MON", "", "0 0 30 2 MON", "UTC"},
		"Offset":     {"the database has zones without places", "@daily", "Etc/GMT+5", "@daily", "Etc/GMT+5"},
		"OldName":    {"and names of old", "@daily", "US/Eastern", "@daily", "US/Eastern"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.Parse(tc.schedule, tc.zone)
			require.NoError(t, err, tc.reason)
			require.Equal(t, tc.want, s.String(), tc.reason)
			require.Equal(t, tc.wantZone, s.Location().String(), tc.reason)
			again := parsed(t, s.String(), s.Location().String())
			require.Equal(t, s, again, "parsing what String says")
		})
	}
}

// everything is the longest schedule that anyone can need.
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

func TestParseRefuses(t *testing.T) {
	const (
		list    = ", as list (a,b), range (a-b) or with a step (*/n)"
		aZone   = "a time zone has no place in it; name it in the field for the time zone"
		seconds = "write five: minute, hour, day of month, month, day of week; there is no field for seconds or years: " +
			"for less than a minute write @every 30s"
		interval = "is no interval; write whole seconds, minutes and hours, at least 1s, such as @every 1h30m"
		never    = "it never comes: no month that it names has that day; April, June, September and November have 30 days, " +
			"February has 29 at most"
		foreign = "it has a character that no schedule has; write letters and digits of ASCII, spaces, and * , - / @"
		known   = "write @hourly, @daily, @weekly, @monthly, @yearly, or @every 1h30m"
		place   = `there is no such zone; write a name of the IANA database, such as "Europe/Berlin" or "UTC"`
	)
	cases := map[string]struct {
		reason   string
		schedule string
		zone     string
		want     string
	}{
		"Empty":     {"nothing", "", "", `schedule "": it is empty; write five fields, such as "0 4 * * *", or @daily`},
		"Blank":     {"nothing to see", " \n", "", `schedule " \n": it is empty; write five fields, such as "0 4 * * *", or @daily`},
		"OnlyZone":  {"robfig panics", "TZ=UTC", "", `schedule "TZ=UTC": ` + aZone},
		"OnlyZone2": {"robfig panics", "CRON_TZ=UTC", "", `schedule "CRON_TZ=UTC": ` + aZone},
		"NoZone":    {"robfig panics", "TZ=", "", `schedule "TZ=": ` + aZone},
		"Zone":      {"CronJob refuses it too", "TZ=Asia/Tokyo 0 4 * * *", "", `schedule "TZ=Asia/Tokyo 0 4 * * *": ` + aZone},
		"CronZone":  {"the other spelling, after a space", " CRON_TZ=UTC @daily", "", `schedule " CRON_TZ=UTC @daily": ` + aZone},
		"Seconds":   {"six fields", "0 0 4 * * *", "", `schedule "0 0 4 * * *": it has 6 fields; ` + seconds},
		"Years":     {"seven fields", "0 0 4 * * * *", "", `schedule "0 0 4 * * * *": it has 7 fields; ` + seconds},
		"Four":      {"one too few", "0 4 * *", "", `schedule "0 4 * *": it has 4 fields; write five: minute, hour, day of month, month, day of week`},
		"Words":     {"no schedule", "tomorrow", "", `schedule "tomorrow": it has 1 fields; write five: minute, hour, day of month, month, day of week`},
		"Minute":    {"out of range", "60 4 * * *", "", `schedule "60 4 * * *": minute "60": end of range (60) above maximum (59): 60; write *, or 0 to 59` + list},
		"Hour":      {"out of range", "0 24 * * *", "", `schedule "0 24 * * *": hour "24": end of range (24) above maximum (23): 24; write *, or 0 to 23` + list},
		"DayZero":   {"days begin at 1", "0 0 0 * *", "", `schedule "0 0 0 * *": day of month "0": beginning of range (0) below minimum (1): 0; write *, or 1 to 31` + list},
		"Month":     {"no name", "0 0 1 MAI *", "", `schedule "0 0 1 MAI *": month "MAI": failed to parse int from MAI: strconv.Atoi: parsing "MAI": invalid syntax; write *, or 1 to 12 or JAN to DEC` + list},
		"Sunday7":   {"Vixie's cron knows 7, robfig and CronJob do not", "0 0 * * 7", "", `schedule "0 0 * * 7": day of week "7": end of range (7) above maximum (6): 7; write *, or 0 to 6 or SUN to SAT, where Sunday is 0` + list},
		"Backwards": {"no range", "0 0 * * FRI-MON", "", `schedule "0 0 * * FRI-MON": day of week "FRI-MON": beginning of range (5) beyond end of range (1): FRI-MON; write *, or 0 to 6 or SUN to SAT, where Sunday is 0` + list},
		"StepZero":  {"no step", "*/0 * * * *", "", `schedule "*/0 * * * *": minute "*/0": step of range should be a positive number: */0; write *, or 0 to 59` + list},
		"Negative":  {"no number", "-1 * * * *", "", `schedule "-1 * * * *": minute "-1": failed to parse int from : strconv.Atoi: parsing "": invalid syntax; write *, or 0 to 59` + list},
		"Comma":     {"robfig takes it, and finds no time", ", * * * *", "", `schedule ", * * * *": minute ",": there is nothing before, after or between commas; write *, or 0 to 59` + list},
		"Commas":    {"robfig takes it as 1,2", "1,,2 * * * *", "", `schedule "1,,2 * * * *": minute "1,,2": there is nothing before, after or between commas; write *, or 0 to 59` + list},
		"StarRange": {"robfig takes it as *", "*-5 * * * *", "", `schedule "*-5 * * * *": minute "*-5": a star is no beginning of a range; write *, or 0 to 59` + list},
		"Never":     {"robfig says year 1", "0 0 30 2 *", "", `schedule "0 0 30 2 *": ` + never},
		"Never31":   {"robfig says year 1", "0 0 31 4,6,9,11 *", "", `schedule "0 0 31 4,6,9,11 *": ` + never},
		"Descr":     {"in lower case only", "@Daily", "", `schedule "@Daily": unrecognized descriptor: @Daily; ` + known},
		"Reboot":    {"an operator has no reboot", "@reboot", "", `schedule "@reboot": unrecognized descriptor: @reboot; ` + known},
		"EveryBare": {"no duration", "@every", "", `schedule "@every": unrecognized descriptor: @every; ` + known},
		"EveryWord": {"no duration", "@every day", "", `schedule "@every day": "day" ` + interval},
		"EveryNeg":  {"robfig takes it as a second", "@every -1h", "", `schedule "@every -1h": "-1h" ` + interval},
		"EveryZero": {"robfig takes it as a second", "@every 0", "", `schedule "@every 0": "0" ` + interval},
		"EveryTiny": {"robfig takes it as a second", "@every 1ns", "", `schedule "@every 1ns": "1ns" ` + interval},
		"EveryFrac": {"robfig takes it as a second", "@every 1500ms", "", `schedule "@every 1500ms": "1500ms" ` + interval},
		"EveryHuge": {"more than a duration holds", "@every 9999999h", "", `schedule "@every 9999999h": "9999999h" ` + interval},
		"TenK": {
			"what is shown is cut", strings.Repeat("0,", 5000) + "0 * * * *", "",
			`schedule "` + strings.Repeat("0,", 30) + `"…: it has 10009 characters; write at most 512`,
		},
		"Binary":    {"any bytes", "\xff\x00", "", `schedule "\xff\x00": ` + foreign},
		"NoBreak":   {"a space of typography, from a copied page", "0\u00a04 * * *", "", `schedule "0\u00a04 * * *": ` + foreign},
		"Place":     {"no zone", "@daily", "Mars/Base", `timeZone "Mars/Base": ` + place},
		"Shift":     {"no name", "@daily", "UTC+2", `timeZone "UTC+2": ` + place},
		"Local":     {"whose?", "@daily", "Local", `timeZone "Local": ` + place},
		"LocalCase": {"whose?", "@daily", "lOCAL", `timeZone "lOCAL": ` + place},
		"Path":      {"no way out of the database", "@daily", "../../etc/passwd", `timeZone "../../etc/passwd": ` + place},
		"Root":      {"nor in", "@daily", "/etc/localtime", `timeZone "/etc/localtime": ` + place},
		"Folder":    {"a folder of the database", "@daily", "Europe", `timeZone "Europe": ` + place},
		"Right":     {"leap seconds, on some machines only", "@daily", "right/Europe/Berlin", `timeZone "right/Europe/Berlin": ` + place},
		"ZoneSpace": {"not cut", "@daily", " UTC", `timeZone " UTC": ` + place},
		"ZoneTenK":  {"not even looked for", "@daily", strings.Repeat("A/", 5000), `timeZone "` + strings.Repeat("A/", 30) + `"…: ` + place},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.Parse(tc.schedule, tc.zone)
			require.ErrorIs(t, err, schedule.ErrInvalid, tc.reason)
			require.EqualError(t, err, "invalid "+tc.want, tc.reason)
			require.Nil(t, s)
		})
	}
}
