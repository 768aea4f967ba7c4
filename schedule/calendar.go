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

// calendar is the set of times that match five cron fields, on a clock that is never set forward or back. A time is a
// number of seconds since 1970 on that clock. Each field is a set of bits: minutes of an hour, hours of a day, days of a
// month and so on.
type calendar struct {
	minutes, hours, daysOfMonth, months, daysOfWeek uint64
	matchBoth                                       bool // a day has to match both daysOfMonth and daysOfWeek
}

func newCalendar(spec *cron.SpecSchedule) calendar {
	const star = 1 << 63 // set by robfig/cron for a field that begins with * and has no step
	return calendar{
		minutes: spec.Minute &^ star, hours: spec.Hour &^ star,
		daysOfMonth: spec.Dom &^ star, months: spec.Month &^ star, daysOfWeek: spec.Dow &^ star,
		matchBoth: (spec.Dom|spec.Dow)&star != 0,
	}
}

// everyHour reports whether every hour of the day matches.
func (c *calendar) everyHour() bool { return c.hours == 1<<24-1 }

// maxMonths is the largest number of months between two times that match. February 29th can be eight years after the
// one before, because a year such as 2100 is not a leap year.
const maxMonths = 12*8 + 1

// next returns the first time after w that matches.
func (c *calendar) next(w int64) (int64, bool) {
	m, d := monthOf(floorDiv(w, day))
	days := c.days(m)
	if days>>d&1 == 1 {
		if at, ok := c.minuteFrom(floorMod(w, day)/minute + 1); ok {
			return m.startOfDay(d) + at*minute, true
		}
	}
	days &^= 1<<(d+1) - 1
	for range maxMonths {
		if days != 0 {
			at, ok := c.minuteFrom(0)
			return m.startOfDay(bits.TrailingZeros64(days)) + at*minute, ok
		}
		m = m.next()
		days = c.days(m)
	}
	return 0, false
}

// latest returns the last time at or before w that matches.
func (c *calendar) latest(w int64) (int64, bool) {
	m, d := monthOf(floorDiv(w, day))
	days := c.days(m)
	if days>>d&1 == 1 {
		if at, ok := c.minuteUntil(floorMod(w, day) / minute); ok {
			return m.startOfDay(d) + at*minute, true
		}
	}
	days &= 1<<d - 1
	for range maxMonths {
		if days != 0 {
			at, ok := c.minuteUntil(day/minute - 1)
			return m.startOfDay(bits.Len64(days)-1) + at*minute, ok
		}
		m = m.previous()
		days = c.days(m)
	}
	return 0, false
}

// count returns how many times in (after, until] match.
func (c *calendar) count(after, until int64) int {
	if until <= after {
		return 0
	}
	first, d := monthOf(floorDiv(after, day))
	count := -c.countUntil(first, d, after)
	last, d := monthOf(floorDiv(until, day))
	count += c.countUntil(last, d, until)
	perDay := bits.OnesCount64(c.hours) * bits.OnesCount64(c.minutes)
	for m := first; m.first < last.first; m = m.next() {
		count += bits.OnesCount64(c.days(m)) * perDay
	}
	return count
}

// countUntil returns how many times match in the month m until w, which is on day d of the month.
func (c *calendar) countUntil(m month, d int, w int64) int {
	days := c.days(m)
	perHour := bits.OnesCount64(c.minutes)
	count := bits.OnesCount64(days&(1<<d-1)) * bits.OnesCount64(c.hours) * perHour
	if days>>d&1 == 1 {
		at := floorMod(w, day) / minute
		count += bits.OnesCount64(c.hours&(1<<(at/60)-1)) * perHour
		if c.hours>>(at/60)&1 == 1 {
			count += bits.OnesCount64(c.minutes & (2<<(at%60) - 1))
		}
	}
	return count
}

// minuteFrom returns the first minute of a day at or after at that matches. at may be the end of the day.
func (c *calendar) minuteFrom(at int64) (int64, bool) {
	hour := at / 60
	if minutes := c.minutes &^ (1<<(at%60) - 1); c.hours>>hour&1 == 1 && minutes != 0 {
		return hour*60 + int64(bits.TrailingZeros64(minutes)), true
	}
	hours := c.hours &^ (2<<hour - 1)
	return int64(bits.TrailingZeros64(hours)*60 + bits.TrailingZeros64(c.minutes)), hours != 0 && c.minutes != 0
}

// minuteUntil returns the last minute of a day at or before at that matches.
func (c *calendar) minuteUntil(at int64) (int64, bool) {
	hour := at / 60
	if minutes := c.minutes & (2<<(at%60) - 1); c.hours>>hour&1 == 1 && minutes != 0 {
		return hour*60 + int64(bits.Len64(minutes)-1), true
	}
	hours := c.hours & (1<<hour - 1)
	return int64((bits.Len64(hours)-1)*60 + bits.Len64(c.minutes) - 1), hours != 0 && c.minutes != 0
}

// days returns the days of a month that match, as bits. Bit 1 is the first day.
func (c *calendar) days(m month) uint64 {
	if c.months>>m.number&1 == 0 {
		return 0
	}
	const week, thursday = 7, 4 // 1970 began on a Thursday
	first := floorMod(m.first+thursday, week)
	days := (c.daysOfWeek>>first | c.daysOfWeek<<(week-first)) & (1<<week - 1) // bit 0 is the weekday of the month's first day
	days |= days<<week | days<<(2*week) | days<<(3*week) | days<<(4*week)
	days <<= 1
	if c.matchBoth {
		days &= c.daysOfMonth
	} else {
		days |= c.daysOfMonth
	}
	return days & (1<<(m.length+1) - 2)
}

// month is a month of the Gregorian calendar.
type month struct {
	year, number, length int
	first                int64 // the first day, in days since 1970
}

// monthOf returns the month of a day, which is given in days since 1970, and the day of the month.
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

// startOfDay returns the beginning of day d of the month, in seconds since 1970.
func (m month) startOfDay(d int) int64 { return (m.first + int64(d) - 1) * day }

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

// floorDiv and floorMod divide integers of any sign. With a positive b, the remainder is never negative.
func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }
