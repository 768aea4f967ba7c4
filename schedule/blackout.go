package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// BlackoutWindow is a time of the week in which nothing starts, as written in a spec. It lasts from Start until just before
// End on the same day, or on the next day if End is before Start. Both are in the time zone of the schedule.
type BlackoutWindow struct {
	// Start is the time of day at which the window begins, as HH:MM from 00:00 to 23:59, in the time zone of the schedule.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`
	// End is the time of day at which the window ends, as HH:MM from 00:00 to 24:00. If it is before start, the window
	// ends on the next day.
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	End string `json:"end"`
	// Days are the days of the week on which the window begins, such as Mon or Monday, in upper or lower case. The default
	// is every day.
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=9
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z]+$`
	// +listType=atomic
	// +optional
	Days []string `json:"days,omitempty"`
}

// BlackoutWindows are the blackout windows of one schedule in their time zone. Make them with [ParseBlackoutWindows].
// They are immutable. The zero value has no window.
type BlackoutWindows struct {
	location *time.Location
	spans    []span // sorted; they neither overlap nor touch
}

// span is a part of the week, in seconds since Sunday 00:00. It does not include its end.
type span struct{ from, to int64 }

const week = 7 * day

// ParseBlackoutWindows parses windows and the name of their time zone. An empty time zone means UTC. The windows may
// overlap, but must not cover the whole week, because no run would ever start. The error is an *[Error] for the
// field timeZone, or for blackoutWindows or a field in it, such as blackoutWindows[0].start.
func ParseBlackoutWindows(timeZone string, windows ...BlackoutWindow) (BlackoutWindows, error) {
	location, err := loadTimeZone(timeZone)
	if err != nil {
		return BlackoutWindows{}, err
	}
	var all []span
	for i, w := range windows {
		spans, err := w.spans(fmt.Sprintf("blackoutWindows[%d]", i))
		if err != nil {
			return BlackoutWindows{}, err
		}
		all = append(all, spans...)
	}
	w := BlackoutWindows{location, merge(all)}
	if slices.Equal(w.spans, []span{{0, week}}) {
		return BlackoutWindows{}, newError("blackoutWindows", nil, "they cover the whole week, so nothing would ever start; leave some time open")
	}
	return w, nil
}

// NextOpen returns the first time at or after t that is in no window. If t is in no window, that is t itself.
// Otherwise it is the end of the window that contains t, or of the windows that overlap or touch it. If the clock is
// set back and repeats an hour, a window in that hour is repeated too.
func (w BlackoutWindows) NextOpen(t time.Time) time.Time {
	if len(w.spans) == 0 {
		return t
	}
	zoned := zonedCalendar{location: w.location}
	at := toSeconds(t)
	for {
		end, ok := w.endOfSpan(zoned.wallTime(at))
		if !ok {
			break
		}
		at = min(end-zoned.offset, zoned.end) // the clock may be set forward or back within the window
	}
	if at == toSeconds(t) {
		return t
	}
	return time.Unix(at, 0).In(t.Location())
}

// lastEnd returns the end of the window that contains t. If t is in no window, it returns the end of the last window
// before t. If no window has ended after the time after, it returns the zero time. Windows that overlap or touch
// count as one.
func (w BlackoutWindows) lastEnd(t, after time.Time) time.Time {
	if len(w.spans) == 0 {
		return time.Time{}
	}
	if end := w.NextOpen(t); end.After(t) {
		return end
	}
	zoned := zonedCalendar{location: w.location}
	for at := toSeconds(t); at >= toSeconds(after); {
		_, end, open := w.around(zoned.wallTime(at))
		if !open {
			return time.Unix(at+1, 0).In(t.Location()) // the clock was set from a time in a window to a time in none
		}
		if end -= zoned.offset; end > zoned.start && end > toSeconds(after) {
			return time.Unix(end, 0).In(t.Location())
		}
		at = zoned.start - 1
	}
	return time.Time{}
}

// nextClosed returns the first time after t that is in a window. w must have a window, and t must not be in one.
func (w BlackoutWindows) nextClosed(t time.Time) time.Time {
	zoned := zonedCalendar{location: w.location}
	for at := toSeconds(t); ; at = zoned.end {
		start, _, open := w.around(zoned.wallTime(at))
		if !open {
			return time.Unix(at, 0).In(t.Location()) // the clock is set from a time in no window to a time in one
		}
		if start -= zoned.offset; start < zoned.end {
			return time.Unix(start, 0).In(t.Location())
		}
	}
}

const sunday = 3 * day // 1970 began on a Thursday

// endOfSpan returns the end of the span that contains a wall time (the time that the clock shows), and whether there
// is such a span.
func (w BlackoutWindows) endOfSpan(wall int64) (int64, bool) {
	inWeek := floorMod(wall-sunday, week)
	for _, s := range w.spans {
		if s.from <= inWeek && inWeek < s.to {
			return wall - inWeek + s.to, true
		}
	}
	return 0, false
}

// around returns the start of the next span after a wall time (the time that the clock shows), and the end of the last
// span before it. If the wall time is in a span, open is false.
func (w BlackoutWindows) around(wall int64) (next, last int64, open bool) {
	inWeek := floorMod(wall-sunday, week)
	next, last = w.spans[0].from+week, w.spans[len(w.spans)-1].to-week // the first span of the next week, and the last span of the week before
	for _, s := range w.spans {
		switch {
		case s.to <= inWeek:
			last = s.to
		case s.from > inWeek:
			return wall - inWeek + s.from, wall - inWeek + last, true
		default:
			return 0, 0, false
		}
	}
	return wall - inWeek + next, wall - inWeek + last, true
}

// spans returns the parts of the week that the window covers. field is the path of the window, for errors.
func (w BlackoutWindow) spans(field string) ([]span, error) {
	start, err := timeOfDay(field+".start", w.Start, "23:59")
	if err != nil {
		return nil, err
	}
	end, err := timeOfDay(field+".end", w.End, "24:00")
	if err != nil {
		return nil, err
	}
	if start == end {
		return nil, newError(field+".end", w.End, "it equals start; for a whole day write 00:00 and 24:00")
	}
	if end < start {
		end += day
	}
	days := []time.Weekday{0, 1, 2, 3, 4, 5, 6}
	if len(w.Days) > 0 {
		days = nil
	}
	for i, name := range w.Days {
		day, ok := weekday(name)
		if !ok {
			return nil, newError(fmt.Sprintf("%s.days[%d]", field, i), name, "it is not a day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun")
		}
		days = append(days, day)
	}
	var spans []span
	for _, d := range days {
		from, to := int64(d)*day+start, int64(d)*day+end
		spans = append(spans, span{from, min(to, week)})
		if to > week {
			spans = append(spans, span{0, to - week})
		}
	}
	return spans, nil
}

// timeOfDay parses a time such as 08:30, and returns the seconds since midnight.
func timeOfDay(field, value, latest string) (int64, error) {
	t, err := time.Parse("15:04", value)
	switch {
	case value == "24:00" && latest == "24:00":
		return day, nil
	case err != nil || len(value) != len("15:04"):
		return 0, newError(field, value, "it is not a time of day; write HH:MM, from 00:00 to %s", latest)
	}
	return int64(t.Hour())*60*minute + int64(t.Minute())*minute, nil
}

func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(name, d.String()) || strings.EqualFold(name, d.String()[:3]) {
			return d, true
		}
	}
	return 0, false
}

// merge sorts spans, and joins spans that overlap or touch.
func merge(spans []span) (merged []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}
