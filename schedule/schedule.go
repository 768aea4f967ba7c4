package schedule

import (
	"time"
)

// Times says when something comes next, strictly after t; the zero time is never. It must be a fixed set of times, the same
// whatever t it is asked with. *[Schedule] is one, robfig's *cron.SpecSchedule and the calendars of others are too.
type Times interface {
	Next(t time.Time) time.Time
}

var _ Times = &Schedule{}

// Schedule is what [Parse] made of a schedule and its zone. It is immutable, and safe for concurrent use. The zero Schedule
// never comes.
type Schedule struct {
	text     string
	location *time.Location
	calendar calendar
	every    int64 // seconds; 0 for a calendar
}

// Next is the first time after t, in t's location, or the zero time after the end of the year 9999, where RFC 3339 ends, and
// with it what the API can store.
//
// An interval (@every) has no times of its own: here it counts from t, as robfig's does. [Due] counts it from when the
// schedule began to hold; to show the next time, use what it says.
func (s *Schedule) Next(t time.Time) time.Time {
	if s.isZero() {
		return time.Time{}
	}
	from := seconds(t)
	at, ok := s.next(from, from)
	return moment(at, ok, t.Location())
}

// String is the schedule without its zone; parsing it again gives the same times.
func (s *Schedule) String() string {
	if s.isZero() {
		return ""
	}
	return s.text
}

// Location is the time zone. Its String is the zone's name.
func (s *Schedule) Location() *time.Location {
	if s.isZero() {
		return time.UTC
	}
	return s.location
}

func (s *Schedule) isZero() bool { return s == nil || s.location == nil }

// next is the first time after a time; an interval counts from the anchor.
func (s *Schedule) next(after, anchor int64) (int64, bool) {
	var at int64
	ok := true
	if s.every > 0 {
		at = grid{anchor, s.every}.next(after)
	} else {
		local := local{location: s.location, calendar: &s.calendar}
		at, ok = local.next(after)
	}
	return at, ok && at <= lastSecond
}

// latest is the last time after one moment and not after another, and how many there are.
func (s *Schedule) latest(after, until, anchor int64) (at int64, count int) {
	if s.every > 0 {
		return grid{anchor, s.every}.latest(after, until)
	}
	local := local{location: s.location, calendar: &s.calendar}
	at, ok := local.latest(until)
	if !ok || at <= after {
		return 0, 0
	}
	return at, local.count(after, until)
}

// The years 1 to 9999, in seconds since 1970.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// seconds since 1970. A time of a schedule is a whole second: it is after t if it is after t cut to seconds.
func seconds(t time.Time) int64 { return min(max(t.Unix(), firstSecond), lastSecond) }

func moment(at int64, ok bool, in *time.Location) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(at, 0).In(in)
}

// grid is the times of @every: the anchor, and then one every so many seconds. The anchor itself is none of them.
//
// robfig counts an interval from the last run instead, which in an operator that restarts means from the restart: it then
// comes late, or never if restarts are more frequent.
type grid struct{ anchor, every int64 }

// steps is how many times have come until t, which is not before the anchor.
func (g grid) steps(t int64) int64 { return (t - g.anchor) / g.every }

func (g grid) next(after int64) int64 { return g.anchor + (g.steps(after)+1)*g.every }

func (g grid) latest(after, until int64) (at int64, count int) {
	before, steps := g.steps(after), g.steps(until)
	if steps <= before {
		return 0, 0
	}
	return g.anchor + steps*g.every, int(steps - before)
}

// floorDiv and floorMod are division and rest for negative numbers too: the rest is never negative.
func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }
