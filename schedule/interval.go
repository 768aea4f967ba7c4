package schedule

import (
	"math"
	"math/bits"
	"time"
)

// CheckInterval returns an error if two scheduled times can be closer than least, the shortest interval that an operator
// allows. The error is an *[Error] for the field schedule. If least is 0 or less, CheckInterval returns nil.
//
// Use it where users write the schedule and each run costs something: @every 1s is valid. A schedule of five fields has
// an interval of a minute or more. CheckInterval ignores that clocks are set: on a day on which the clock is set forward,
// two runs can be closer than it says, usually by an hour. If [Parse] cannot parse the schedule, CheckInterval returns an
// error too.
func CheckInterval(schedule string, least time.Duration) error {
	s, err := parseSchedule(schedule)
	if err != nil {
		return newError("schedule", schedule, "%w", err)
	}
	shortest := time.Duration(min(s.shortest(), math.MaxInt64/int64(time.Second))) * time.Second
	if shortest >= least {
		return nil
	}
	allowed := (least + time.Second - 1).Truncate(time.Second)
	return newError("schedule", schedule, "its shortest interval is %v, and at least %v is allowed; write a longer interval, such as @every %v",
		shortest, allowed, allowed)
}

// shortest returns the shortest distance between two scheduled times, in seconds.
func (s *Schedule) shortest() int64 {
	if s.every > 0 {
		return s.every
	}
	c := &s.calendar
	minutes, first, last := closest(c.minutes)
	shortest := distance(minutes)
	hours, firstHour, lastHour := closest(c.hours)
	if hours > 0 {
		shortest = min(shortest, distance(hours*60+first-last))
	}
	if shortest == 1 {
		return minute
	}
	days := c.closestDays()
	return min(shortest, distance(days*24*60+(firstHour*60+first)-(lastHour*60+last))) * minute
}

// distance returns minutes, or the largest number if minutes is 0 or less, which means that two such times do not
// exist.
func distance(minutes int64) int64 {
	if minutes <= 0 {
		return math.MaxInt64 / minute
	}
	return minutes
}

// closest returns the shortest distance between two bits of the set, and the positions of the first and the last bit.
// If there is only one bit, the distance is 0.
func closest(set uint64) (shortest, first, last int64) {
	first, last = int64(bits.TrailingZeros64(set)), int64(bits.Len64(set)-1)
	for before := int64(-1); set != 0; set &= set - 1 {
		at := int64(bits.TrailingZeros64(set))
		if before >= 0 && (shortest == 0 || at-before < shortest) {
			shortest = at - before
		}
		before = at
	}
	return shortest, first, last
}

// closestDays returns the shortest distance between two days that match, in days. It looks at 28 years, after which the
// weekdays repeat.
func (c *calendar) closestDays() int64 {
	const never = -1 << 40
	shortest, last := int64(math.MaxInt32), int64(never)
	m, _ := monthOf(0)
	for range 28*12 + 1 {
		for days := c.days(m); days != 0 && shortest > 1; days &= days - 1 {
			at := m.first + int64(bits.TrailingZeros64(days))
			shortest, last = min(shortest, at-last), at
		}
		m = m.next()
	}
	return shortest
}
