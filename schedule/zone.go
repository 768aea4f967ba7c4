package schedule

import (
	"math"
	"strings"
	"time"
	_ "time/tzdata" // see doc.go: without it, every zone but UTC is unknown in a distroless image
)

// maxTimeZone is longer than any name in the database; the longest has 30 characters.
const maxTimeZone = 64

// loadTimeZone applies CronJob's validation of spec.timeZone. It refuses Local, which is the time zone of the
// operator and not of the user.
func loadTimeZone(name string) (*time.Location, error) {
	const remedy = `write a name of the IANA database, such as "Europe/Berlin" or "UTC"`
	valid := len(name) <= maxTimeZone && !strings.EqualFold(name, "Local") && name != "posixrules" &&
		// The database of the system may have these files beside the names; the embedded database does not. right/ counts
		// leap seconds.
		!strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/") &&
		strings.Trim(name, "/_+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	if valid {
		if location, err := time.LoadLocation(name); err == nil {
			return location, nil
		}
	}
	return nil, newError("timeZone", name, "there is no such zone; "+remedy)
}

// zonedCalendar is a calendar in a time zone, whose clocks are set forward and back. Times are seconds since 1970. A wall
// time is the time that the clock of the zone shows, as if it were a time in UTC.
//
// If the calendar does not match every hour of the day, each of its times comes when the clock first shows it or a later
// time. So a time that the clock skips comes right after the jump, and several skipped times come as one. A time that the
// clock shows twice comes only the first time. If the calendar matches every hour, each time comes whenever the clock shows
// it, so its intervals are in elapsed time.
//
// This is the rule of cron(8) since Vixie's version: jobs at specific times, or more than an hour apart, run right after an
// hour that is skipped, and do not run again in an hour that is repeated. More frequent jobs follow the new time at once.
type zonedCalendar struct {
	location           *time.Location
	calendar           *calendar
	offset, start, end int64 // the period of one UTC offset that findPeriod found last
}

// maxUTCOffset is larger than any UTC offset of any zone at any time.
const maxUTCOffset = 16 * 60 * minute

// findPeriod sets offset, start and end to a period that contains t and has one UTC offset.
func (z *zonedCalendar) findPeriod(t int64) {
	if z.start <= t && t < z.end {
		return
	}
	at := time.Unix(t, 0).In(z.location)
	_, offset := at.Zone()
	start, end := at.ZoneBounds()
	z.offset, z.start, z.end = int64(offset), math.MinInt64, math.MaxInt64
	if !end.IsZero() {
		z.end = end.Unix()
	}
	// The database may have a rule instead of dates, as many zones have since 2007. Then Go ends each period at the
	// end of the year. In a leap year such a period ends a day early, before t: https://go.dev/issue/81583.
	if z.end <= t {
		z.end = (floorDiv(t, day) + 1) * day
	}
	// A period may also begin with the year, even if the database has dates after that.
	for !start.IsZero() {
		z.start = start.Unix()
		if _, end = start.ZoneBounds(); !end.After(start) || end.After(at) {
			break
		}
		start = end
	}
}

// wallTime returns the time that the clock shows at t.
func (z *zonedCalendar) wallTime(t int64) int64 {
	z.findPeriod(t)
	return t + z.offset
}

// maxWallTime returns the latest wall time that the clock has shown until t. While the clock repeats times, it is later
// than the wall time at t.
func (z *zonedCalendar) maxWallTime(t int64) int64 {
	latest := z.wallTime(t)
	for z.start > t-2*maxUTCOffset { // a jump back that is longer ago has no effect: the clock has passed all repeated times
		latest = max(latest, z.wallTime(z.start-1))
	}
	return latest
}

// firstShown returns the time at which the clock first shows this wall time or a later one.
func (z *zonedCalendar) firstShown(wall int64) int64 {
	for t := wall - maxUTCOffset; ; t = z.end {
		z.findPeriod(t)
		if at := max(t, wall-z.offset); at < z.end {
			return at
		}
	}
}

// next returns the first time after t that matches.
func (z *zonedCalendar) next(t int64) (int64, bool) {
	if !z.calendar.everyHour() {
		wall, ok := z.calendar.next(z.maxWallTime(t))
		return z.firstShown(wall), ok
	}
	for {
		z.findPeriod(t + 1)
		wall, ok := z.calendar.next(t + z.offset)
		if at := wall - z.offset; at < z.end || !ok {
			return at, ok
		}
		t = z.end - 1
	}
}

// latest returns the last time at or before t that matches.
func (z *zonedCalendar) latest(t int64) (int64, bool) {
	if !z.calendar.everyHour() {
		wall, ok := z.calendar.latest(z.maxWallTime(t))
		return z.firstShown(wall), ok
	}
	for {
		wall, ok := z.calendar.latest(z.wallTime(t))
		if at := wall - z.offset; at >= z.start || !ok {
			return at, ok
		}
		t = z.start - 1
	}
}

// count returns how many times in (after, until] match. It takes a few nanoseconds for each month and for each
// jump of the clock.
func (z *zonedCalendar) count(after, until int64) int {
	if z.calendar.everyHour() {
		return z.countShown(after, until)
	}
	count := z.calendar.count(z.maxWallTime(after), z.maxWallTime(until))
	z.findPeriod(after)
	for z.end <= until {
		jump, before := z.end, z.offset
		if z.findPeriod(jump); z.offset > before { // all times that the clock skips come as one
			count -= max(1, z.calendar.count(z.maxWallTime(jump-1), z.maxWallTime(jump))) - 1
		}
		z.findPeriod(jump)
	}
	return count
}

// countShown counts a time twice if the clock shows it twice.
func (z *zonedCalendar) countShown(after, until int64) (count int) {
	for after < until {
		z.findPeriod(after + 1)
		end := min(z.end-1, until)
		count += z.calendar.count(after+z.offset, end+z.offset)
		after = end
	}
	return count
}
