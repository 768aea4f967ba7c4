package schedule

import (
	"math"
	"strings"
	"time"
	_ "time/tzdata" // see doc.go: without it, every zone but UTC is unknown in a distroless image
)

// local lays a calendar over the days of a zone, where the clock on the wall is set forwards and back.
//
// A calendar that names times of day comes when the clock first reaches or passes them. So a time that the clock jumps over
// comes when the jump is done, several of them as one; and a time that the clock shows twice comes the first time.
// A calendar of every hour comes whenever the clock shows one of its times, so its interval is that of real time.
//
// The rule is that of cron(8) since Vixie's: jobs at specific times, or more than an hour apart, run right after the hour that
// is skipped, and not again in the one that is repeated; more frequent jobs go by the new time at once.
type local struct {
	location           *time.Location
	calendar           *calendar
	offset, start, end int64 // of the period with one offset from UTC that was looked at last
}

// No zone has ever been further from UTC than 16 hours.
const furthest = 16 * 60 * minute

// look finds the period that t is in.
func (l *local) look(t int64) {
	if l.start <= t && t < l.end {
		return
	}
	at := time.Unix(t, 0).In(l.location)
	_, offset := at.Zone()
	start, end := at.ZoneBounds()
	l.offset, l.start, l.end = int64(offset), math.MinInt64, math.MaxInt64
	if !end.IsZero() {
		l.end = end.Unix()
	}
	// Go ends periods with the year where the database gives a rule instead of dates, which for many zones is since 2007. A
	// leap year then ends a day early, before t: https://go.dev/issue/81583.
	if l.end <= t {
		l.end = (floorDiv(t, day) + 1) * day
	}
	// For the same reason a period may begin with the year, though the last date in the database came later.
	for !start.IsZero() {
		l.start = start.Unix()
		if _, end = start.ZoneBounds(); !end.After(start) || end.After(at) {
			break
		}
		start = end
	}
}

// wall is the time that the clock shows at t.
func (l *local) wall(t int64) int64 {
	l.look(t)
	return t + l.offset
}

// highest is the latest time that the clock has shown until t: more than it shows now while it repeats itself.
func (l *local) highest(t int64) int64 {
	high := l.wall(t)
	for l.start > t-2*furthest { // an earlier jump back has been made up for since
		high = max(high, l.wall(l.start-1))
	}
	return high
}

// reached is when the clock first shows w or more.
func (l *local) reached(w int64) int64 {
	for t := w - furthest; ; t = l.end {
		l.look(t)
		if at := max(t, w-l.offset); at < l.end {
			return at
		}
	}
}

// next is the first time after t.
func (l *local) next(t int64) (int64, bool) {
	if !l.calendar.everyHour() {
		w, ok := l.calendar.next(l.highest(t))
		return l.reached(w), ok
	}
	for {
		l.look(t + 1)
		w, ok := l.calendar.next(t + l.offset)
		if at := w - l.offset; at < l.end || !ok {
			return at, ok
		}
		t = l.end - 1
	}
}

// latest is the last time that is not after t.
func (l *local) latest(t int64) (int64, bool) {
	if !l.calendar.everyHour() {
		w, ok := l.calendar.latest(l.highest(t))
		return l.reached(w), ok
	}
	for {
		w, ok := l.calendar.latest(l.wall(t))
		if at := w - l.offset; at >= l.start || !ok {
			return at, ok
		}
		t = l.start - 1
	}
}

// count is how many times there are after one and until another. It takes a few nanoseconds a month and a jump of the clock.
func (l *local) count(after, until int64) int {
	if l.calendar.everyHour() {
		return l.countShown(after, until)
	}
	count := l.calendar.count(l.highest(after), l.highest(until))
	l.look(after)
	for l.end <= until {
		jump, before := l.end, l.offset
		if l.look(jump); l.offset > before { // what it jumps over comes as one
			count -= max(1, l.calendar.count(l.highest(jump-1), l.highest(jump))) - 1
		}
		l.look(jump)
	}
	return count
}

// countShown counts each time as often as the clock shows it.
func (l *local) countShown(after, until int64) (count int) {
	for after < until {
		l.look(after + 1)
		end := min(l.end-1, until)
		count += l.calendar.count(after+l.offset, end+l.offset)
		after = end
	}
	return count
}

// maxZone is longer than any name in the database; the longest has 30 characters.
const maxZone = 64

// loadZone follows CronJob's validation of spec.timeZone: Local is refused, since it is the operator's zone and not the user's.
func loadZone(name string) (*time.Location, error) {
	const remedy = `write a name of the IANA database, such as "Europe/Berlin" or "UTC"`
	valid := len(name) <= maxZone && !strings.EqualFold(name, "Local") &&
		// The system's database has these beside the names; the embedded one has not, and right counts leap seconds.
		!strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/") &&
		strings.Trim(name, "/_+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	if valid {
		if location, err := time.LoadLocation(name); err == nil {
			return location, nil
		}
	}
	return nil, invalid("timeZone", " %s: there is no such zone; %s", quote(name), remedy)
}
