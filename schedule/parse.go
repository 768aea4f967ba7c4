package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// ErrInvalid is what every error of this package wraps: the input is wrong, and stays so until somebody changes it. The
// text names the field, its value and what to write instead, and is the same in every pass, so it can go into a condition.
var ErrInvalid = errors.New("invalid")

// Error is the type of these errors.
type Error struct {
	// Field is the one that is wrong, as it is called in JSON: schedule, timeZone, blackoutWindows[0].start.
	Field string
	err   error
}

func invalid(field, format string, args ...any) error {
	return &Error{field, fmt.Errorf("%w "+field+format, append([]any{ErrInvalid}, args...)...)}
}

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Reason is that of a condition: InvalidSchedule, InvalidTimeZone, InvalidBlackoutWindows and so on.
func (e *Error) Reason() string {
	field, _, _ := strings.Cut(e.Field, "[")
	return "Invalid" + strings.ToUpper(field[:1]) + field[1:]
}

// maxSchedule is longer than any schedule needs: one that lists every minute, hour, day and month has 360 characters.
const maxSchedule = 512

// Parse reads a schedule and the name of its time zone, as they stand in a spec. An empty zone is UTC.
//
// A schedule is five fields (minute, hour, day of month, month, day of week), each with *, lists, ranges, steps and names
// such as MON and JAN; or @hourly, @daily or @midnight, @weekly, @monthly, @yearly or @annually; or @every with a duration
// of whole seconds, such as @every 1h30m. The syntax is that of robfig/cron/v3, which Kubernetes' CronJob reads too:
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax. As there, a day has to match the
// day of month or the day of week if both are limited, and both if one of them begins with * and has no step.
//
// What robfig takes but nobody means is refused: a zone in the schedule, as CronJob refuses it; times that never come
// (0 0 30 2 *); an empty entry (1,,2); a range after a star (*-5); a duration below a second or with fractions. The error is
// [ErrInvalid].
//
// Parsing takes about 30 µs, most of it for the zone: parse once a pass.
func Parse(schedule, timeZone string) (*Schedule, error) {
	s, err := parse(schedule)
	if err != nil {
		return nil, invalid("schedule", " %s: %w", quote(schedule), err)
	}
	if s.location, err = loadZone(timeZone); err != nil {
		return nil, err
	}
	return s, nil
}

func parse(text string) (*Schedule, error) {
	fields := strings.Fields(text)
	switch {
	case len(text) > maxSchedule:
		return nil, fmt.Errorf("it has %d characters; write at most %d", len(text), maxSchedule)
	case strings.ContainsFunc(text, isForeign):
		return nil, errors.New("it has a character that no schedule has; write letters and digits of ASCII, spaces, and * , - / @")
	case len(fields) == 0:
		return nil, errors.New(`it is empty; write five fields, such as "0 4 * * *", or @daily`)
	case strings.Contains(strings.ToUpper(text), "TZ="):
		return nil, errors.New("a time zone has no place in it; name it in the field for the time zone")
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

// isForeign is true for what an error would show badly, and for spaces of typography, at which robfig parts fields.
func isForeign(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsPrint(r) && !unicode.IsSpace(r)
}

func parseDescriptor(text string) (*Schedule, error) {
	if value, ok := strings.CutPrefix(text, "@every "); ok {
		every, err := time.ParseDuration(value)
		if err != nil || every < time.Second || every%time.Second != 0 {
			return nil, fmt.Errorf("%s is no interval; write whole seconds, minutes and hours, at least 1s, such as @every 1h30m", quote(value))
		}
	}
	s, err := newSchedule(text)
	if err != nil {
		return nil, fmt.Errorf("%w; write @hourly, @daily, @weekly, @monthly, @yearly, or @every 1h30m", err)
	}
	return s, nil
}

// newSchedule lets robfig parse what was checked before.
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
		return nil, fmt.Errorf("it is of an unknown kind, %T", parsed)
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

// check lets robfig parse the field alone, so that the error can name it, after what robfig drops without a word.
func (r fieldRule) check(i int, value string) error {
	fields := []string{"*", "*", "*", "*", "*"}
	fields[i] = value
	_, err := parser().Parse(strings.Join(fields, " "))
	for entry := range strings.SplitSeq(value, ",") {
		if entry == "" {
			err = errors.New("there is nothing before, after or between commas")
		} else if strings.ContainsAny(entry[:1], "*?") && strings.Contains(entry, "-") {
			err = errors.New("a star is no beginning of a range")
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w; write *, or %s, as list (a,b), range (a-b) or with a step (*/n)", r.name, quote(value), err, r.allowed)
	}
	return nil
}

// quote keeps a value of any length readable in one line.
func quote(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", value)
}
