package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// maxSchedule is longer than any schedule needs: one that lists every minute, hour, day and month has 360 characters.
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
// The syntax is that of robfig/cron/v3, which Kubernetes' CronJob uses too:
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax.
//
// Parse refuses what robfig/cron accepts but nobody means: a time zone in the schedule, which CronJob refuses too; a
// schedule that has no time (0 0 30 2 *); an empty entry (1,,2); a range after a star (*-5); a duration below a second
// or with a fraction of a second. The error is an *[Error] for the field schedule or timeZone, and wraps [ErrInvalid].
//
// Parse takes about 30 µs, most of it for the time zone: call it at most once in a reconcile.
func Parse(schedule, timeZone string) (*Schedule, error) {
	s, err := parseSchedule(schedule)
	if err != nil {
		return nil, newError("schedule", " %s: %w", quote(schedule), err)
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
	case len(fields) != len(fieldRules):
		hint := ""
		if len(fields) > len(fieldRules) {
			hint = "; there is no field for seconds or years: for less than a minute write @every 30s"
		}
		return nil, fmt.Errorf("it has %d fields; write five: minute, hour, day of month, month, day of week%s", len(fields), hint)
	}
	for i, field := range fields {
		if err := fieldRules[i].check(i, field); err != nil {
			return nil, err
		}
	}
	return newSchedule(strings.Join(fields, " "))
}

// isForeign reports whether an error message could not show the character well. It also finds Unicode spaces, at which
// robfig/cron splits fields.
func isForeign(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsPrint(r) && !unicode.IsSpace(r)
}

func parseDescriptor(text string) (*Schedule, error) {
	if value, ok := strings.CutPrefix(text, "@every "); ok {
		every, err := time.ParseDuration(value)
		if err != nil || every < time.Second || every%time.Second != 0 {
			return nil, fmt.Errorf("%s is not an interval; write whole seconds, minutes and hours, at least 1s, such as @every 1h30m",
				quote(value))
		}
	}
	s, err := newSchedule(text)
	if err != nil {
		return nil, fmt.Errorf("%w; write @hourly, @daily, @weekly, @monthly, @yearly, or @every 1h30m", err)
	}
	return s, nil
}

// newSchedule parses a text that was checked before, with robfig's parser.
func newSchedule(text string) (*Schedule, error) {
	parsed, err := parser().Parse(text)
	if err != nil {
		return nil, err
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

type fieldRule struct{ name, allowed string }

var fieldRules = [...]fieldRule{
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of month", "1 to 31"},
	{"month", "1 to 12 or JAN to DEC"},
	{"day of week", "0 to 6 or SUN to SAT, where Sunday is 0"},
}

// check parses the field alone, so that the error can name it. It also refuses what robfig's parser ignores silently.
func (r fieldRule) check(i int, value string) error {
	fields := []string{"*", "*", "*", "*", "*"}
	fields[i] = value
	_, err := parser().Parse(strings.Join(fields, " "))
	for entry := range strings.SplitSeq(value, ",") {
		if entry == "" {
			err = errors.New("a value is missing before or after a comma")
		} else if strings.ContainsAny(entry[:1], "*?") && strings.Contains(entry, "-") {
			err = errors.New("a range cannot begin with a star")
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w; write *, or %s, as list (a,b), range (a-b) or with a step (*/n)", r.name, quote(value), err, r.allowed)
	}
	return nil
}
