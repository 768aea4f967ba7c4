package schedule

import (
	"math"
	"time"
)

// maxCarry limits how much later than the end of a blackout window a run starts because of the windows after it.
const maxCarry = 24 * time.Hour

// startTime returns the start time of a run that is due, as far as is known now: its scheduled time plus the offset, or if a
// blackout window was or is open since then, a time after the last such window. The result does not depend on whether the
// operator was up in that window.
func (in *Input) startTime(scheduled, now time.Time) time.Time {
	place := scheduled.Add(in.Offset)
	if end := in.BlackoutWindows.lastEnd(now, place); end.After(place) {
		return in.afterWindow(end, scheduled)
	}
	return place
}

// afterWindow returns the start time of a run that a blackout window delays until its end: the offset after the end. If the
// next window begins before that, the run waits for that window too, but for maxCarry at most, and not beyond its deadline.
// If it would have to, it starts before the next window: the offset then wraps around within the time between the windows,
// so that the runs are spread there, too.
//
// For two ends of windows, with no start time between them, the result is the same.
func (in *Input) afterWindow(end, scheduled time.Time) time.Time {
	next := in.BlackoutWindows.nextClosed(end)
	length := next.Sub(end)
	if in.Offset < length {
		return end.Add(in.Offset)
	}
	for {
		later := in.BlackoutWindows.NextOpen(next)
		start := later.Add(in.Offset)
		if start.Sub(end) > maxCarry || in.isTooLate(scheduled, start) {
			return end.Add(in.Offset % length)
		}
		if next = in.BlackoutWindows.nextClosed(later); start.Before(next) {
			return start
		}
	}
}

// nextStart returns the first start time of the runs from this scheduled time on, whose place is still to come. It is not
// always the start time of the first of them: a later one whose place is after a blackout window may start before one that
// the window delays.
func (in *Input) nextStart(scheduled time.Time, location *time.Location) time.Time {
	var delayed time.Time
	for !scheduled.IsZero() {
		place := scheduled.Add(in.Offset)
		end := in.BlackoutWindows.NextOpen(place)
		if end.Equal(place) {
			return earlier(place, delayed)
		}
		if delayed.IsZero() {
			delayed = in.afterWindow(end, scheduled)
		}
		if !end.Before(delayed) {
			break
		}
		scheduled = in.next(end.Add(-in.Offset-1), location) // the first whose place is not before the end
	}
	return delayed
}

// earlier returns the earlier one of two times that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isTooLate reports whether the starting deadline of the run with this scheduled time has passed.
func (in *Input) isTooLate(scheduled, now time.Time) bool {
	const maxSeconds = math.MaxInt64 / int64(time.Second)
	if in.StartingDeadlineSeconds == nil || *in.StartingDeadlineSeconds > maxSeconds {
		return false
	}
	return now.Sub(scheduled.Add(in.Offset)) > time.Duration(*in.StartingDeadlineSeconds)*time.Second
}
