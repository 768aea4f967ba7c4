package state

import (
	"strconv"
	"strings"
	"time"
)

// ClockStart is the time at which the virtual clock of testing/synctest begins. A number that is a time of a run is close to it.
var ClockStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// maxClock is how far the clock of a run may get. A number does not count as a time if it is later than ClockStart by more than this.
const maxClock = 400 * 24 * time.Hour

// isTimeNumber reports whether a number is a time of the run since 1970, in nanoseconds, microseconds, milliseconds,
// seconds or minutes.
func isTimeNumber(n int64) bool {
	for _, unit := range []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Minute} {
		first := ClockStart.Unix() * int64(time.Second/min(unit, time.Second))
		if unit > time.Second {
			first = ClockStart.Unix() / int64(unit/time.Second)
		}
		if n >= first && n < first+int64(maxClock/unit) {
			return true
		}
	}
	return false
}

// dateLayouts are common layouts of times in names.
var dateLayouts = []string{"20060102", "200601021504", "20060102150405"}

// isTimeText reports whether digits are a time of the run: a number, or a date.
func isTimeText(digits string) bool {
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, digits); err == nil && at.Year() == ClockStart.Year() {
			return true
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return err == nil && isTimeNumber(n)
}

// minTimeDigits is the smallest number of digits of a time: a date has 8 digits, and a number of minutes since 1970 has 8 too.
const minTimeDigits = 8

// mayHaveTimes reports whether a text has enough digits in a row for a time.
func mayHaveTimes(text string) bool {
	row := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			row = 0
		} else if row++; row == minTimeDigits {
			return true
		}
	}
	return false
}

// withoutTimes returns a text, such as a name, with "<time>" in place of each time in it. If digits follow a time after a dash, they are
// replaced too: 20000101-1200 is one time.
func withoutTimes(name string) string {
	if !mayHaveTimes(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		end := i + digitsAt(name[i:])
		if end == i {
			b.WriteByte(name[i])
			i++
			continue
		}
		if !isTimeText(name[i:end]) {
			b.WriteString(name[i:end])
			i = end
			continue
		}
		b.WriteString("<time>")
		if i = end; i < len(name) && name[i] == '-' {
			if more := digitsAt(name[i+1:]); more > 0 && (i+1+more == len(name) || name[i+1+more] == '-' || name[i+1+more] == '.') {
				i += 1 + more
			}
		}
	}
	return b.String()
}

// digitsAt returns how many digits the text begins with.
func digitsAt(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}
