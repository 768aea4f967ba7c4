package schedule_test

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/schedule"
)

// zones have had UTC offsets of whole minutes since 1975. Their clocks were set by an hour, by less than an hour,
// twice a year, at midnight, and by a day.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Africa/Casablanca",
	"Antarctica/Troll", "Pacific/Apia", "Pacific/Kwajalein", "Asia/Kathmandu", "Asia/Pyongyang", "America/Scoresbysund", "Africa/Cairo",
}

// FuzzDue compares Due with oracle, which steps through every minute. It begins near a day on which the clocks are set.
func FuzzDue(f *testing.F) {
	f.Fuzz(func(t *testing.T, zone, year uint8, before int16, down uint16, minutes, hours, days, months, weekdays uint64,
		every uint16, offset uint16, deadline int32, closed uint64, last uint16,
	) {
		o := oracle{t: t, fields: fields{minutes, hours, days, months, weekdays}.within(), every: time.Duration(every) * time.Second}
		name := zones[int(zone)%len(zones)]
		s, err := schedule.Parse(o.text(), name)
		if err != nil {
			require.ErrorContains(t, err, "it never comes")
			return
		}
		o.location = s.Location()
		o.closed = newWindows(closed)
		w, err := schedule.ParseBlackoutWindows(name, o.closed.windows()...)
		if err != nil {
			require.ErrorContains(t, err, "they cover the whole week")
			return
		}

		begin := time.Date(1975+int(year)%100, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, end := begin.In(o.location).ZoneBounds(); !end.IsZero() {
			begin = end.UTC()
		}
		in := schedule.Input{
			Schedule: s, BlackoutWindows: w, Offset: time.Duration(offset) * time.Second,
			Since: new(metav1.NewTime(begin.Add(time.Duration(before) * time.Minute / 4))),
		}
		if last > 0 {
			in.LastScheduleTime = new(metav1.NewTime(in.Since.Add(time.Duration(last) * time.Second)))
		}
		if deadline >= 0 {
			in.StartingDeadlineSeconds = new(int64(deadline))
		}
		now := in.Since.Add(time.Duration(down%20000)*time.Minute + time.Duration(down%7)*time.Second)
		got, err := schedule.Due(now, in)
		require.NoError(t, err)
		require.Equal(t, show(o.due(now, in, got)), show(got), "%s in %s since %v, now %v: %+v", s, name, in.Since, now, in)
		requireKept(t, now, in, got)

		in.Schedule = others{o.times}
		if len(o.times) > 0 && !o.times[len(o.times)-1].Before(got.Next) && got.Missed < 90 {
			searched, err := schedule.Due(now, in)
			require.NoError(t, err)
			require.Equal(t, show(got), show(searched), "the same, with only the method Next")
		}
	})
}

// requireKept proves that Due keeps the promise of RequeueAt: no run starts before it. At RequeueAt, a deferred run must
// start, unless another run is due instead.
func requireKept(t *testing.T, now time.Time, in schedule.Input, d schedule.Decision) {
	if d.Verdict != schedule.Waiting && d.Verdict != schedule.Deferred || d.RequeueAt.IsZero() {
		return
	}
	require.True(t, d.RequeueAt.After(now))
	for part := range time.Duration(8) {
		at := now.Add(d.RequeueAt.Sub(now) / 8 * part)
		before, err := schedule.Due(at, in)
		require.NoError(t, err)
		require.NotEqual(t, schedule.Start, before.Verdict, "at %v, before %v", at, d.RequeueAt)
	}
	then, err := schedule.Due(d.RequeueAt, in)
	require.NoError(t, err)
	if d.Verdict == schedule.Deferred && then.Verdict != schedule.Start {
		require.NotEqual(t, d.ScheduledTime, then.ScheduledTime, "%v was promised, then %v", d.RequeueAt, then.RequeueAt)
	}
}

// others is a schedule whose type is not *Schedule.
type others struct{ once }

// oracle is a slow and simple implementation of the documented rules.
type oracle struct {
	t        *testing.T
	fields   fields
	every    time.Duration
	location *time.Location
	closed   twoWindows
	times    []time.Time // the scheduled times, from two days before Since on
}

func (o *oracle) text() string {
	if o.every > 0 {
		return "@every " + o.every.String()
	}
	return o.fields.String()
}

// due returns the decision that Due should return. It steps through the minutes up to the times that Due returned as
// Next and RequeueAt.
func (o *oracle) due(now time.Time, in schedule.Input, got schedule.Decision) schedule.Decision {
	until := got.Next
	after := in.Since.Time
	if !in.LastScheduleTime.IsZero() && in.LastScheduleTime.After(after) {
		after = in.LastScheduleTime.Time
	}
	most := now.Add(30 * 24 * time.Hour) // due does not step beyond this time
	if until.Before(most) && got.RequeueAt.Add(-in.Offset).After(until) {
		o.walk(in.Since.Time, got.RequeueAt.Add(-in.Offset))
	} else {
		o.walk(in.Since.Time, min64(until, most))
	}

	d := schedule.Decision{Verdict: schedule.Waiting, Next: until}
	if until.Before(most) {
		d.Next = time.Time{}
	}
	for _, at := range o.times {
		switch {
		case !at.After(after):
		case at.Add(in.Offset).After(now):
			if d.Next.IsZero() {
				d.Next = at
			}
		default:
			if !d.ScheduledTime.IsZero() {
				d.Missed++
			}
			d.ScheduledTime = at
		}
	}
	d.RequeueAt = got.RequeueAt
	if until.Before(most) {
		d.RequeueAt = o.nextStart(now, after, in)
	}
	var start time.Time
	if !d.ScheduledTime.IsZero() {
		start = o.start(d.ScheduledTime.Add(in.Offset), now, in)
	}
	switch {
	case after.After(now):
		d.Verdict = schedule.ClockBehind
	case d.ScheduledTime.IsZero():
	case o.late(d.ScheduledTime, now, in), o.late(d.ScheduledTime, start, in):
		d.Verdict = schedule.TooLate
		d.Missed++
	case start.After(now):
		d.Verdict = schedule.Deferred
		if d.RequeueAt.IsZero() || start.Before(d.RequeueAt) {
			d.RequeueAt = start
		}
	default:
		d.Verdict = schedule.Start
	}
	return d
}

// late reports whether a time is after the deadline of a run.
func (o *oracle) late(scheduled, at time.Time, in schedule.Input) bool {
	return in.StartingDeadlineSeconds != nil && at.Sub(scheduled.Add(in.Offset)).Seconds() > float64(*in.StartingDeadlineSeconds)
}

func (o *oracle) walk(since, until time.Time) {
	if o.every > 0 {
		for at := since.Add(o.every); !at.After(until); at = at.Add(o.every) {
			o.times = append(o.times, at)
		}
		return
	}
	at := since.Add(-2 * 24 * time.Hour).Truncate(time.Minute)
	shown := o.wall(at)
	for ; !at.After(until); at = at.Add(time.Minute) {
		wall := o.wall(at)
		comes := o.fields.hours == 1<<24-1 && o.fields.have(wall)
		for ; shown.Before(wall); comes = comes || o.fields.hours != 1<<24-1 && o.fields.have(shown) {
			shown = shown.Add(time.Minute)
		}
		if comes {
			o.times = append(o.times, at)
		}
	}
}

// wall returns the time that the clock shows, as a time in UTC.
func (o *oracle) wall(at time.Time) time.Time {
	_, offset := at.In(o.location).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

func (o *oracle) open(at time.Time) time.Time {
	for o.closed.have(at.In(o.location)) {
		at = at.Truncate(time.Minute).Add(time.Minute)
	}
	return at
}

// start returns when a run starts that has not started until now. place is its due time.
func (o *oracle) start(place, now time.Time, in schedule.Input) time.Time {
	var last time.Time
	for at := place; !at.After(now); at = at.Truncate(time.Minute).Add(time.Minute) {
		if o.closed.have(at.In(o.location)) {
			last = at
		}
	}
	if last.IsZero() {
		return place
	}
	return o.afterWindow(o.open(last), place, in)
}

// afterWindow returns the start of a run that a blackout window has delayed. end is the end of the window, and place
// the due time of the run. If no window begins before end + offset, it returns end + offset. Otherwise it tries the
// ends of later windows, within a day and the deadline. If none of them allows a start, it returns end + the offset
// modulo the time until the next window.
func (o *oracle) afterWindow(end, place time.Time, in schedule.Input) time.Time {
	for later := end; ; {
		closed := o.nextClosed(later)
		start := later.Add(in.Offset)
		tooLate := start.Sub(end) > 24*time.Hour ||
			in.StartingDeadlineSeconds != nil && start.Sub(place).Seconds() > float64(*in.StartingDeadlineSeconds)
		switch {
		case start.Before(closed) && (later.Equal(end) || !tooLate):
			return start
		case tooLate && !later.Equal(end):
			return end.Add(in.Offset % o.nextClosed(end).Sub(end))
		}
		later = o.open(closed)
	}
}

func (o *oracle) nextClosed(at time.Time) time.Time {
	for !o.closed.have(at.In(o.location)) {
		at = at.Truncate(time.Minute).Add(time.Minute)
	}
	return at
}

// nextStart returns the earliest start of the runs whose due time is in the future.
func (o *oracle) nextStart(now, after time.Time, in schedule.Input) (first time.Time) {
	var end time.Time
	for _, scheduled := range o.times {
		place := scheduled.Add(in.Offset)
		if !scheduled.After(after) || !place.After(now) || place.Before(end) {
			continue // the first run that waits for the same end has the earliest deadline, so it decides
		}
		start := o.start(place, place, in)
		if first.IsZero() || start.Before(first) {
			first = start
		}
		if start.Equal(place) {
			break
		}
		end = o.open(place)
	}
	return first
}

func min64(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// fields are the five fields of a schedule, with one bit for each value. A field with all bits is written as a star.
type fields struct{ minutes, hours, days, months, weekdays uint64 }

func (f fields) within() fields {
	in := func(value, all uint64) uint64 {
		if value &= all; value == 0 {
			return all
		}
		return value
	}
	return fields{in(f.minutes, 1<<60-1), in(f.hours, 1<<24-1), in(f.days, 1<<32-2), in(f.months, 1<<13-2), in(f.weekdays, 1<<7-1)}
}

func (f fields) have(wall time.Time) bool {
	day, weekday := f.days>>wall.Day()&1 == 1, f.weekdays>>int(wall.Weekday())&1 == 1
	onDay := day && weekday
	if f.days != 1<<32-2 && f.weekdays != 1<<7-1 {
		onDay = day || weekday
	}
	return onDay && f.minutes>>wall.Minute()&1 == 1 && f.hours>>wall.Hour()&1 == 1 && f.months>>int(wall.Month())&1 == 1
}

func (f fields) String() string {
	text := func(value, all uint64) string {
		if value == all {
			return "*"
		}
		var list []string
		for ; value != 0; value &= value - 1 {
			list = append(list, strconv.Itoa(bits.TrailingZeros64(value)))
		}
		return strings.Join(list, ",")
	}
	return strings.Join([]string{
		text(f.minutes, 1<<60-1), text(f.hours, 1<<24-1), text(f.days, 1<<32-2), text(f.months, 1<<13-2), text(f.weekdays, 1<<7-1),
	}, " ")
}

// hours is a blackout window. from and length are in quarters of an hour. If weekday is 7, the window is on every
// day of the week.
type hours struct{ from, length, weekday int }

func newHours(value uint64) hours {
	return hours{from: int(value % 96), length: int(value / 96 % 64), weekday: int(value / 96 / 64 % 8)}
}

func (h hours) windows() []schedule.BlackoutWindow {
	if h.length == 0 {
		return nil
	}
	w := schedule.BlackoutWindow{Start: quarter(h.from), End: quarter((h.from + h.length) % 96)}
	if h.weekday < 7 {
		w.Days = []string{time.Weekday(h.weekday).String()}
	}
	return []schedule.BlackoutWindow{w}
}

// twoWindows are two blackout windows.
type twoWindows [2]hours

func newWindows(value uint64) twoWindows {
	const values = 96 * 64 * 8
	return twoWindows{newHours(value), newHours(value / values)}
}

func (w twoWindows) windows() []schedule.BlackoutWindow {
	return append(w[0].windows(), w[1].windows()...)
}

func (w twoWindows) have(at time.Time) bool { return w[0].have(at) || w[1].have(at) }

func quarter(n int) string { return time.Unix(int64(n)*900, 0).UTC().Format("15:04") }

func (h hours) have(at time.Time) bool {
	now := at.Hour()*4 + at.Minute()/15
	on := func(now int, day time.Weekday) bool {
		return h.from <= now && now < h.from+h.length && (h.weekday == 7 || int(day) == h.weekday)
	}
	return on(now, at.Weekday()) || on(now+96, (at.Weekday()+6)%7)
}
