package schedule

import "time"

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
