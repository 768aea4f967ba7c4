package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// BlackoutWindow is a time of the week in which nothing may start, as it stands in a spec. It goes from Start until End of the same
// day, without End itself, or past midnight to End of the next day if End is before Start. Both are HH:MM on the clock on
// the wall, from 00:00 to 23:59; End may be 24:00.
type BlackoutWindow struct {
	// Start is when it begins, as HH:MM.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`
	// End is when it ends, as HH:MM; 24:00 is the end of the day.
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	End string `json:"end"`
	// Days on which it starts: Mon or Monday and so on, in any case. None is every day.
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=9
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z]+$`
	// +listType=atomic
	// +optional
	Days []string `json:"days,omitempty"`
}

// BlackoutWindows are those of one schedule. The zero value is none; they are immutable, and safe for concurrent use.
type BlackoutWindows struct {
	location *time.Location
	closed   []span // in order, and none touches the next
}

// span is a part of the week from Sunday 00:00, in seconds, without its end.
type span struct{ from, to int64 }

const week = 7 * day

// ParseBlackoutWindows reads windows and the name of their time zone, which is UTC if empty. Windows may overlap. If they leave no
// minute of the week, the error says so, since nothing would ever start. The error is [ErrInvalid].
func ParseBlackoutWindows(timeZone string, windows ...BlackoutWindow) (BlackoutWindows, error) {
	location, err := loadZone(timeZone)
	if err != nil {
		return BlackoutWindows{}, err
	}
	var closed []span
	for i, w := range windows {
		spans, err := w.spans(fmt.Sprintf("blackoutWindows[%d]", i))
		if err != nil {
			return BlackoutWindows{}, err
		}
		closed = append(closed, spans...)
	}
	w := BlackoutWindows{location, merge(closed)}
	if slices.Equal(w.closed, []span{{0, week}}) {
		return BlackoutWindows{}, invalid("blackoutWindows", ": they cover the whole week, so nothing would ever start; leave some time open")
	}
	return w, nil
}

// Open is the first moment at or after t that is in no window: t itself, or the end of the windows that t is in. While the
// clock repeats an hour, a window in that hour repeats too.
func (w BlackoutWindows) Open(t time.Time) time.Time {
	if len(w.closed) == 0 {
		return t
	}
	local := local{location: w.location}
	at := seconds(t)
	for {
		end, ok := w.closedUntil(local.wall(at))
		if !ok {
			break
		}
		at = min(end-local.offset, local.end) // the clock may be set within the window
	}
	if at == seconds(t) {
		return t
	}
	return time.Unix(at, 0).In(t.Location())
}

// closedUntil is the end of the span that a time on the wall is in.
func (w BlackoutWindows) closedUntil(wall int64) (int64, bool) {
	const sunday = 3 * day // 1970 began on a Thursday
	of := floorMod(wall-sunday, week)
	for _, s := range w.closed {
		if s.from <= of && of < s.to {
			return wall - of + s.to, true
		}
	}
	return 0, false
}

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
		return nil, invalid(field+".end", " %q: it is the start as well; for a whole day write 00:00 and 24:00", w.End)
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
			return nil, invalid(fmt.Sprintf("%s.days[%d]", field, i), " %s: it is no day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun", quote(name))
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

func timeOfDay(field, value, latest string) (int64, error) {
	t, err := time.Parse("15:04", value)
	switch {
	case value == "24:00" && latest == "24:00":
		return day, nil
	case err != nil || len(value) != len("15:04"):
		return 0, invalid(field, " %s: it is no time of day; write HH:MM, from 00:00 to %s", quote(value), latest)
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
