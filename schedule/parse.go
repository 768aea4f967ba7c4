package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// maxSchedule is longer than any useful schedule: a schedule that lists every minute, hour, day and month has 360
// characters.
const maxSchedule = 512

// Parse parses a schedule and the name of its time zone. An empty time zone means UTC.
//
// A schedule is one of
//
//   - five fields: minute, hour, day of month, month, day of week. Each is *, a list, a range, a step or a name such as
//     MON or JAN. If day of month and day of week are both restricted, a day has to match one of them. If one of them
//     begins with * and has no step, a day has to match both.
//   - @hourly, @daily or @midnight, @weekly, @monthly, @yearly or @annually
//   - @every and a duration in whole seconds, such as @every 1h30m
//
// This is the syntax of robfig/cron/v3, which Kubernetes' CronJob uses too:
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax.
//
// Parse refuses some schedules that robfig/cron accepts, but that are probably mistakes: a time zone in the schedule,
// which CronJob refuses too; a schedule that has no time (0 0 30 2 *); an empty entry (1,,2); a range after a star
// (*-5); a sign (+5); a step larger than the number of values that the field or the range has (*/90, 10-20/30); a
// duration below a second or with a fraction of a second. The error is an *[Error] for the field schedule or timeZone.
//
// Parse takes about 10 µs. Most of that is for reading the time zone, in each call. So call it at most once in a
// reconcile.
func Parse(schedule, timeZone string) (*Schedule, error) {
	s, err := parseSchedule(schedule)
	if err != nil {
		return nil, newError("schedule", schedule, "%w", err)
	}
	if s.location, err = loadTimeZone(timeZone); err != nil {
		return nil, err
	}
	return s, nil
}

func parseSchedule(text string) (*Schedule, error) {
	fields := strings.Fields(text)
	switch {
	case len(text) > maxSchedule:
		return nil, fmt.Errorf("it has %d characters; write at most %d", len(text), maxSchedule)
	case strings.ContainsFunc(text, isForeign):
		return nil, errors.New("it has a character that is not allowed; write ASCII letters and digits, spaces, and * , - / @")
	case len(fields) == 0:
		return nil, errors.New(`it is empty; write five fields, such as "0 4 * * *", or @daily`)
	case strings.Contains(strings.ToUpper(text), "TZ="):
		return nil, errors.New("it must not contain a time zone; write the time zone in its own field, timeZone")
	case strings.HasPrefix(fields[0], "@"):
		return parseDescriptor(strings.Join(fields, " "))
	case len(fields) != len(fieldRules) && slices.ContainsFunc(fields, isCutOff):
		return nil, errors.New("there is a space beside a comma, a hyphen or a slash; write an entry without spaces, such as 1,2")
	case len(fields) != len(fieldRules):
		hint := ""
		if len(fields) > len(fieldRules) {
			hint = "; there is no field for seconds or years: for less than a minute write @every 30s"
		}
		return nil, fmt.Errorf("it has %d fields; write five: minute, hour, day of month, month, day of week%s", len(fields), hint)
	}
	for i, field := range fields {
		if err := fieldRules[i].check(field); err != nil {
			return nil, err
		}
	}
	return newSchedule(strings.Join(fields, " "))
}

// isCutOff reports whether a space has cut a field in two. Then the field begins or ends with a separator.
func isCutOff(field string) bool { return strings.Trim(field, ",-/") != field }

// isForeign reports whether a character would be hard to see in an error message. Unicode spaces, at which robfig/cron
// splits fields, are among these characters.
func isForeign(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsPrint(r) && !unicode.IsSpace(r)
}

func parseDescriptor(text string) (*Schedule, error) {
	const every = "@every "
	value, isInterval := strings.CutPrefix(text, every)
	interval, err := time.ParseDuration(value)
	switch {
	case isInterval && (err != nil || interval < time.Second || interval%time.Second != 0):
		return nil, fmt.Errorf("%s is not an interval; write whole seconds, minutes and hours, at least 1s, such as @every 1h30m",
			quote(value))
	case !isInterval && !slices.Contains(descriptors, text):
		return nil, fmt.Errorf("%s is not known; write @hourly, @daily, @weekly, @monthly, @yearly, or @every 1h30m", quote(text))
	}
	return newSchedule(text)
}

var descriptors = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

// newSchedule parses a text with robfig's parser. The text must have passed the checks of Parse.
func newSchedule(text string) (*Schedule, error) {
	parsed, err := parser().Parse(text)
	if err != nil { // cannot happen: the checks accept nothing that robfig's parser refuses
		return nil, errors.New(`it cannot be read; write five fields, such as "0 4 * * *", or @daily`)
	}
	s := &Schedule{text: text}
	switch parsed := parsed.(type) {
	case cron.ConstantDelaySchedule:
		s.every = int64(parsed.Delay / time.Second)
	case *cron.SpecSchedule:
		s.calendar = newCalendar(parsed)
		if _, ok := s.calendar.next(0); !ok {
			return nil, errors.New("it never comes: no month that it names has that day; April, June, September and November " +
				"have 30 days, February has 29 at most")
		}
	default:
		return nil, fmt.Errorf("the parser returned an unknown type, %T", parsed)
	}
	return s, nil
}

func parser() cron.Parser {
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
}
