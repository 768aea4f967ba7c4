package schedule

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	minute = 60
	day    = 24 * 60 * minute
)

// calendar is the set of times that five cron fields name, on a clock on the wall that nobody ever sets. It counts in that
// clock's seconds since 1970, and finds what it looks for by bits: minutes of an hour, hours of a day, days of a month.
type calendar struct {
	minutes, hours, daysOfMonth, months, daysOfWeek uint64
	both                                            bool // a day has to match both of its fields, or else one
}

func newCalendar(spec *cron.SpecSchedule) calendar {
	const star = 1 << 63 // robfig's mark of a field that begins with * and has no step
	return calendar{
		minutes: spec.Minute &^ star, hours: spec.Hour &^ star,
		daysOfMonth: spec.Dom &^ star, months: spec.Month &^ star, daysOfWeek: spec.Dow &^ star,
		both: (spec.Dom|spec.Dow)&star != 0,
	}
}

// everyHour says that the schedule names no time of day.
func (c *calendar) everyHour() bool { return c.hours == 1<<24-1 }

// mostMonths is how far two times can be apart: February 29th comes after eight years where the century is no leap year.
const mostMonths = 12*8 + 1

// next is the first time after w.
func (c *calendar) next(w int64) (int64, bool) {
	m, d := monthOf(floorDiv(w, day))
	days := c.days(m)
	if days>>d&1 == 1 {
		if at, ok := c.minuteFrom(floorMod(w, day)/minute + 1); ok {
			return m.second(d) + at*minute, true
		}
	}
	days &^= 1<<(d+1) - 1
	for range mostMonths {
		if days != 0 {
			at, ok := c.minuteFrom(0)
			return m.second(bits.TrailingZeros64(days)) + at*minute, ok
		}
		m = m.next()
		days = c.days(m)
	}
	return 0, false
}

// latest is the last time that is not after w.
func (c *calendar) latest(w int64) (int64, bool) {
	m, d := monthOf(floorDiv(w, day))
	days := c.days(m)
	if days>>d&1 == 1 {
		if at, ok := c.minuteUntil(floorMod(w, day) / minute); ok {
			return m.second(d) + at*minute, true
		}
	}
	days &= 1<<d - 1
	for range mostMonths {
		if days != 0 {
			at, ok := c.minuteUntil(day/minute - 1)
			return m.second(bits.Len64(days)-1) + at*minute, ok
		}
		m = m.previous()
		days = c.days(m)
	}
	return 0, false
}

// count is how many times there are after one and until another.
func (c *calendar) count(after, until int64) int {
	if until <= after {
		return 0
	}
	first, d := monthOf(floorDiv(after, day))
	count := -c.countUntil(first, d, after)
	last, d := monthOf(floorDiv(until, day))
	count += c.countUntil(last, d, until)
	aDay := bits.OnesCount64(c.hours) * bits.OnesCount64(c.minutes)
	for m := first; m.first < last.first; m = m.next() {
		count += bits.OnesCount64(c.days(m)) * aDay
	}
	return count
}

// countUntil is how many times there are in a month until w, which is on its day d.
func (c *calendar) countUntil(m month, d int, w int64) int {
	days := c.days(m)
	anHour := bits.OnesCount64(c.minutes)
	count := bits.OnesCount64(days&(1<<d-1)) * bits.OnesCount64(c.hours) * anHour
	if days>>d&1 == 1 {
		at := floorMod(w, day) / minute
		count += bits.OnesCount64(c.hours&(1<<(at/60)-1)) * anHour
		if c.hours>>(at/60)&1 == 1 {
			count += bits.OnesCount64(c.minutes & (2<<(at%60) - 1))
		}
	}
	return count
}

// minuteFrom is the first minute of a day that is not before at, which may be the end of the day.
func (c *calendar) minuteFrom(at int64) (int64, bool) {
	hour := at / 60
	if minutes := c.minutes &^ (1<<(at%60) - 1); c.hours>>hour&1 == 1 && minutes != 0 {
		return hour*60 + int64(bits.TrailingZeros64(minutes)), true
	}
	hours := c.hours &^ (2<<hour - 1)
	return int64(bits.TrailingZeros64(hours)*60 + bits.TrailingZeros64(c.minutes)), hours != 0 && c.minutes != 0
}

// minuteUntil is the last minute of a day that is not after at.
func (c *calendar) minuteUntil(at int64) (int64, bool) {
	hour := at / 60
	if minutes := c.minutes & (2<<(at%60) - 1); c.hours>>hour&1 == 1 && minutes != 0 {
		return hour*60 + int64(bits.Len64(minutes)-1), true
	}
	hours := c.hours & (1<<hour - 1)
	return int64((bits.Len64(hours)-1)*60 + bits.Len64(c.minutes) - 1), hours != 0 && c.minutes != 0
}

// days are those of a month, bit 1 for the first.
func (c *calendar) days(m month) uint64 {
	if c.months>>m.number&1 == 0 {
		return 0
	}
	const week, thursday = 7, 4 // 1970 began on a Thursday
	first := floorMod(m.first+thursday, week)
	days := (c.daysOfWeek>>first | c.daysOfWeek<<(week-first)) & (1<<week - 1) // from the weekday of the first
	days |= days<<week | days<<(2*week) | days<<(3*week) | days<<(4*week)
	days <<= 1
	if c.both {
		days &= c.daysOfMonth
	} else {
		days |= c.daysOfMonth
	}
	return days & (1<<(m.length+1) - 2)
}

// month of the Gregorian calendar.
type month struct {
	year, number, length int
	first                int64 // its first day, in days since 1970
}

// monthOf gives the month of a day since 1970, and which day of it that is.
func monthOf(since1970 int64) (m month, d int) {
	year, number, d := time.Unix(since1970*day, 0).UTC().Date()
	m = month{year: year, number: int(number), first: since1970 - int64(d) + 1}
	m.length = m.days()
	return m, d
}

func (m month) next() month {
	m.first += int64(m.length)
	if m.number++; m.number > 12 {
		m.year, m.number = m.year+1, 1
	}
	m.length = m.days()
	return m
}

func (m month) previous() month {
	if m.number--; m.number < 1 {
		m.year, m.number = m.year-1, 12
	}
	m.length = m.days()
	m.first -= int64(m.length)
	return m
}

// second is the beginning of the month's day d, in seconds since 1970.
func (m month) second(d int) int64 { return (m.first + int64(d) - 1) * day }

func (m month) days() int {
	switch m.number {
	case 2:
		if m.year%4 == 0 && (m.year%100 != 0 || m.year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
