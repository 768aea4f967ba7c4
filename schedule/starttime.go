package schedule

import (
	"math"
	"time"
)

// maxCarry is the longest time after the end of a blackout window at which a run may start because later windows delay
// it too.
const maxCarry = 24 * time.Hour

// startTime returns when a due run starts that has not started until now. If there was a blackout window since its due
// time, it starts after the last window, and else at its due time. It does not matter whether the operator was up in that
// window.
func (in *Input) startTime(scheduled, now time.Time) time.Time {
	due := scheduled.Add(in.Offset)
	if end := in.BlackoutWindows.lastEnd(now, due); end.After(due) {
		return in.afterWindow(end, scheduled)
	}
	return due
}

// afterWindow returns when a run starts that is delayed by a blackout window with this end: one offset later. If another
// window begins before that, the run is delayed by that one too, unless it would start more than maxCarry after the end or
// beyond its deadline. Otherwise it starts before the other window begins, at the offset modulo the time between the two
// windows, so that the runs are spread there as well.
//
// A run that is delayed by a second window starts at the same time, whichever of the two ends is passed. So the decision
// stays the same from one reconcile to the next, and no run is delayed forever.
func (in *Input) afterWindow(end, scheduled time.Time) time.Time {
	next := in.BlackoutWindows.nextClosed(end)
	length := next.Sub(end)
	if in.Offset < length {
		return end.Add(in.Offset)
	}
	for {
		open := in.BlackoutWindows.NextOpen(next)
		start := open.Add(in.Offset)
		if start.Sub(end) > maxCarry || in.isTooLate(scheduled, start) {
			return end.Add(in.Offset % length)
		}
		if next = in.BlackoutWindows.nextClosed(open); start.Before(next) {
			return start
		}
	}
}

// nextStart returns when the first of the runs from this scheduled time on can start; they all become due in the future. The
// first need not be the run of this scheduled time: one that becomes due after a blackout window may start before a run
// that the window delays.
func (in *Input) nextStart(scheduled time.Time, location *time.Location) time.Time {
	var delayed time.Time
	for !scheduled.IsZero() {
		due := scheduled.Add(in.Offset)
		end := in.BlackoutWindows.NextOpen(due)
		if end.Equal(due) {
			return earlier(due, delayed)
		}
		if delayed.IsZero() {
			delayed = in.afterWindow(end, scheduled)
		}
		if !end.Before(delayed) {
			break
		}
		scheduled = in.next(end.Add(-in.Offset-1), location) // the first that is due at the end or later
	}
	return delayed
}

// earlier returns the earlier one of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isTooLate reports whether the starting deadline of the run with this scheduled time has passed.
func (in *Input) isTooLate(scheduled, now time.Time) bool {
	const maxSeconds = math.MaxInt64 / int64(time.Second)
	if in.StartingDeadlineSeconds == nil || *in.StartingDeadlineSeconds > maxSeconds {
		return false
	}
	return now.Sub(scheduled.Add(in.Offset)) > time.Duration(*in.StartingDeadlineSeconds)*time.Second
}
