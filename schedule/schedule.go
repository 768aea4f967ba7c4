package schedule

import "time"

// times is the part of [Input.Schedule] that this package calls.
type times interface {
	Next(t time.Time) time.Time
}

var _ times = &Schedule{}

// Schedule is a schedule with its time zone. [Parse] returns one. It is immutable. The zero Schedule has no times.
type Schedule struct {
	text     string
	location *time.Location
	calendar calendar
	every    int64 // the interval in seconds; 0 for a calendar
}

// Next returns the first scheduled time strictly after t, in t's location. It returns the zero time after the end of
// the year 9999: RFC 3339, and therefore the API, has no later times.
//
// An interval (@every) has no fixed times. Next counts the interval from t, as robfig/cron does. [Due] counts it from
// [Input.Since]. To show the next scheduled time, use [Decision.Next].
func (s *Schedule) Next(t time.Time) time.Time {
	if s.isZero() {
		return time.Time{}
	}
	from := toSeconds(t)
	at, ok := s.next(from, from)
	return toTime(at, ok, t.Location())
}

// String returns the schedule without its time zone. Parsing the result again returns the same times.
func (s *Schedule) String() string {
	if s.isZero() {
		return ""
	}
	return s.text
}

// Location returns the time zone. Its String method returns the zone's name.
func (s *Schedule) Location() *time.Location {
	if s.isZero() {
		return time.UTC
	}
	return s.location
}

func (s *Schedule) isZero() bool { return s == nil || s.location == nil }

// next returns the first scheduled time after a time. An interval counts from anchor.
func (s *Schedule) next(after, anchor int64) (int64, bool) {
	var at int64
	ok := true
	if s.every > 0 {
		at = interval{anchor, s.every}.next(after)
	} else {
		zoned := zonedCalendar{location: s.location, calendar: &s.calendar}
		at, ok = zoned.next(after)
	}
	return at, ok && at <= lastSecond
}

// latest returns the last scheduled time in (after, until], and the number of scheduled times in that range.
func (s *Schedule) latest(after, until, anchor int64) (at int64, count int) {
	if s.every > 0 {
		return interval{anchor, s.every}.latest(after, until)
	}
	zoned := zonedCalendar{location: s.location, calendar: &s.calendar}
	at, ok := zoned.latest(until)
	if !ok || at <= after {
		return 0, 0
	}
	return at, zoned.count(after, until)
}

// interval is the set of times of @every: the anchor plus every positive multiple of a number of seconds.
//
// robfig/cron counts an interval from the last run instead. In an operator that restarts, it counts from the restart. The run
// is then late, or never starts if restarts are more frequent than the interval.
type interval struct{ anchor, every int64 }

// steps returns how many times are after the anchor and not after t. t must not be before the anchor.
func (i interval) steps(t int64) int64 { return (t - i.anchor) / i.every }

func (i interval) next(after int64) int64 { return i.anchor + (i.steps(after)+1)*i.every }

func (i interval) latest(after, until int64) (at int64, count int) {
	before, steps := i.steps(after), i.steps(until)
	if steps <= before {
		return 0, 0
	}
	return i.anchor + steps*i.every, int(steps - before)
}

// The years 1 to 9999, in seconds since 1970.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// toSeconds returns t in seconds since 1970, without its fraction. Scheduled times are whole seconds. So a
// scheduled time is after t if and only if it is after the result.
func toSeconds(t time.Time) int64 { return min(max(t.Unix(), firstSecond), lastSecond) }

// toTime returns the time for a number of seconds since 1970. If ok is false, it returns the zero time.
func toTime(at int64, ok bool, location *time.Location) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(at, 0).In(location)
}
