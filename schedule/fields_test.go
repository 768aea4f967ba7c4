package schedule_test

import (
	"strings"
	"testing"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

// TestParseStep has entries with a step for each field, and the values that they match.
func TestParseStep(t *testing.T) {
	for _, text := range []string{
		"*/1 * * * *", "*/59 * * * *", "*/60 * * * *", "0-59/5 * * * *", "0-59/60 * * * *", "10-20/11 * * * *", "5/15 * * * *", "5/60 * * * *",
		"59/1 * * * *", "5-5/1 * * * *", "?/5 * * * *", "05 04 * * *", "0,30-40/5,59 * * * *", "0/0010 * * * *",
		"0 */24 * * *", "0 */23 * * *", "0 8-18/2 * * *", "0 5/24 * * *",
		"0 0 */31 * *", "0 0 1/7 * *", "0 0 1-28/14 * *",
		"0 0 1 */12 *", "0 0 1 JAN-DEC/3 *", "0 0 1 jan/6 *", "0 0 1 1/12 *",
		"0 0 * * */7", "0 0 * * MON-FRI/2", "0 0 * * mon/2", "0 0 ? * SUN-SAT/7",
	} {
		_, err := schedule.Parse(text, "")
		require.NoError(t, err)
		compareWithRobfig(t, text, utc(t, "2026-03-01 00:00"))
	}
}

func TestParseFieldInvalid(t *testing.T) {
	const (
		list    = ", as list (a,b), range (a-b) or with a step (*/n)"
		minutes = "; write *, or 0 to 59" + list
		space   = "there is a space beside a comma, a hyphen or a slash; write an entry without spaces, such as 1,2"
		last    = "there is no L (the last day); write a day that each month has, 1 to 28, or the weekday alone, such as FRI, for each week"
		working = "there is no W (the working day nearest to a date); write a day of the month, or MON-FRI as day of week for each working day"
		nth     = "there is no # (the nth weekday of a month); write the weekday alone, such as FRI, for each week, or a day of the month"
		hashed  = "there is no H (a value that differs from object to object); write a value, such as 0, or a step, such as */15, " +
			"and spread the objects by the offset (spreadSeconds)"
	)
	cases := map[string]struct {
		reason   string
		schedule string
		robfig   bool // whether robfig/cron accepts it
		want     string
	}{
		"StepOfMinutes": {"It would be hourly.", "*/90 * * * *", true, `minute "*/90": the step "90" is larger than the 60 values that the field has, so it would match 0 alone; write 0 if you mean that, a step of at most 60, or @every 90m as the whole schedule for an interval of that length`},
		"StepOfHours":   {"It would be daily.", "0 */25 * * *", true, `hour "*/25": the step "25" is larger than the 24 values that the field has, so it would match 0 alone; write 0 if you mean that, a step of at most 24, or @every 25h as the whole schedule for an interval of that length`},
		"StepFromValue": {"It would be hourly.", "5/100 * * * *", true, `minute "5/100": the step "100" is larger than the 60 values that the field has, so it would match 5 alone; write 5 if you mean that, a step of at most 60, or @every 100m as the whole schedule for an interval of that length`},
		"StepOfRange":   {"The range is shorter.", "10-20/30 * * * *", true, `minute "10-20/30": the step "30" is larger than the 11 values that the range has, so it would match 10 alone; write 10 if you mean that, a step of at most 11`},
		"StepOfDays":    {"It would be monthly.", "0 0 */32 * *", true, `day of month "*/32": the step "32" is larger than the 31 values that the field has, so it would match 1 alone; write 1 if you mean that, a step of at most 31`},
		"StepOfMonths":  {"It would be yearly.", "0 0 1 */13 *", true, `month "*/13": the step "13" is larger than the 12 values that the field has, so it would match 1 alone; write 1 if you mean that, a step of at most 12`},
		"StepOfWeek":    {"It would be weekly.", "0 0 * * */8", true, `day of week "*/8": the step "8" is larger than the 7 values that the field has, so it would match 0 alone; write 0 if you mean that, a step of at most 7`},
		"StepOfNames":   {"The range is shorter.", "0 0 * * MON-FRI/7", true, `day of week "MON-FRI/7": the step "7" is larger than the 5 values that the range has, so it would match 1 alone; write 1 if you mean that, a step of at most 5`},
		"StepInList":    {"One entry of the list is wrong.", "0,20-30/40 * * * *", true, `minute "0,20-30/40": the step "40" is larger than the 11 values that the range has, so it would match 20 alone; write 20 if you mean that, a step of at most 11`},
		"StepHuge":      {"It is longer than a number can be.", "*/99999999999999999999 * * * *", false, `minute "*/99999999999999999999": the step "99999999999999999999" is larger than the 60 values that the field has, so it would match 0 alone; write 0 if you mean that, a step of at most 60`},
		"StepWord":      {"It is not a number.", "*/x * * * *", false, `minute "*/x": the step "x" is not a number from 1` + minutes},
		"StepSigned":    {"robfig/cron accepts it as 5.", "*/+5 * * * *", true, `minute "*/+5": the step "+5" is not a number from 1` + minutes},
		"StepNegative":  {"It is not a number from 1.", "*/-5 * * * *", false, `minute "*/-5": the step "-5" is not a number from 1` + minutes},
		"StepMissing":   {"Nothing follows the slash.", "*/ * * * *", false, `minute "*/": the step "" is not a number from 1` + minutes},
		"StepTwice":     {"There are two steps.", "*/5/5 * * * *", false, `minute "*/5/5": the step "5/5" is not a number from 1` + minutes},
		"StepAlone":     {"Nothing is before the slash.", "/5 * * * *", false, `minute "/5": "" is not a number` + minutes},
		"Signed":        {"robfig/cron accepts it as 5.", "+5 * * * *", true, `minute "+5": a value has no sign; write "5" without the +`},
		"SignedRange":   {"robfig/cron accepts it as 1-5.", "0 0 * * 1-+5", true, `day of week "1-+5": a value has no sign; write "5" without the +`},
		"Huge":          {"It is longer than a number can be.", "99999999999999999999 * * * *", false, `minute "99999999999999999999": "99999999999999999999" is out of range` + minutes},
		"Word":          {"It is not a number.", "5a * * * *", false, `minute "5a": "5a" is not a number` + minutes},
		"NameElsewhere": {"Only months and weekdays have names.", "0 MON * * *", false, `hour "MON": "MON" is not a number; write *, or 0 to 23` + list},
		"LongName":      {"Names have three letters.", "0 0 * * MONDAY", false, `day of week "MONDAY": "MONDAY" is neither a number nor a name; write *, or 0 to 6 or SUN to SAT, where Sunday is 0` + list},
		"EndsWithL":     {"A name that ends with L is no extension.", "0 0 1 APRIL *", false, `month "APRIL": "APRIL" is neither a number nor a name; write *, or 1 to 12 or JAN to DEC` + list},
		"Range":         {"The end is missing.", "5- * * * *", false, `minute "5-": a value is missing before or after a hyphen` + minutes},
		"RangeOfThree":  {"A range has two values.", "1-2-3 * * * *", false, `minute "1-2-3": "2-3" is not a number` + minutes},
		"SpaceInList":   {"The list has a space before its comma.", "1 ,2 * * * *", false, space},
		"SpaceAfter":    {"The list has a space after its comma.", "1, 2 * * * *", false, space},
		"SpaceInRange":  {"The range has spaces.", "0 8 - 18 * * *", false, space},
		"SpaceInStep":   {"The step has a space.", "* /5 * * * *", false, space},
		"SpaceAndFive":  {"With the space there are five fields.", "1 ,2 * * *", true, `hour ",2": a value is missing before or after a comma; write *, or 0 to 23` + list},
		"Last":          {"Quartz has it.", "0 0 L * *", false, `day of month "L": ` + last},
		"LastLower":     {"In lower case.", "0 0 l * *", false, `day of month "l": ` + last},
		"LastBut":       {"Quartz has it.", "0 0 L-3 * *", false, `day of month "L-3": ` + last},
		"LastFriday":    {"Quartz has it.", "0 0 * * 5L", false, `day of week "5L": ` + last},
		"LastSunday":    {"Quartz counts from 1 to 7.", "0 0 * * 7L", false, `day of week "7L": ` + last},
		"LastFridayToo": {"Quartz has it.", "0 0 * * FRIL", false, `day of week "FRIL": ` + last},
		"Working":       {"Quartz has it.", "0 0 15W * *", false, `day of month "15W": ` + working},
		"LastWorking":   {"Quartz has it.", "0 0 1,LW * *", false, `day of month "1,LW": ` + working},
		"Nth":           {"Quartz has it.", "0 0 * * FRI#3", false, `day of week "FRI#3": ` + nth},
		"Hash":          {"Jenkins has it.", "H 4 * * *", false, `minute "H": ` + hashed},
		"HashStep":      {"Jenkins has it.", "H/15 * * * *", false, `minute "H/15": ` + hashed},
		"HashRange":     {"Jenkins has it.", "H(0-29)/10 * * * *", false, `minute "H(0-29)/10": ` + hashed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.Parse(tc.schedule, "")
			require.ErrorAs(t, err, new(*schedule.Error), tc.reason)
			require.EqualError(t, err, `invalid schedule "`+tc.schedule+`": `+tc.want, tc.reason)
			requireOwnWords(t, tc.schedule, err)
			_, err = cron.ParseStandard(tc.schedule)
			require.Equal(t, tc.robfig, err == nil, "robfig/cron: %v", err)
		})
	}
}

// requireOwnWords proves that an error contains no words from the errors of the packages that the parser uses, except
// words of the schedule itself.
func requireOwnWords(t *testing.T, text string, err error) {
	t.Helper()
	for _, word := range []string{"strconv", "parse", "syntax", "descriptor", "maximum", "minimum", "beyond", "robfig", "cron.", "time:", "cannot be read"} {
		if !strings.Contains(text, word) {
			require.NotContains(t, err.Error(), word)
		}
	}
}
