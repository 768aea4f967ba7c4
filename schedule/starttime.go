package schedule

import (
	"math"
	"time"
)

// maxCarry is the longest time between the end of a blackout window and the start of a run that later windows delay
// too.
const maxCarry = 24 * time.Hour

// startTime returns when a due run starts that has not started until now. If there was a blackout window since its due
// time, it starts after the last window. Otherwise it starts at its due time. It does not matter whether the operator was
// up during the window.
func (in *Input) startTime(scheduled, now time.Time) time.Time {
	due := scheduled.Add(in.Offset)
	if end := in.BlackoutWindows.lastEnd(now, due); end.After(due) {
		return in.afterWindow(end, scheduled)
	}
	return due
}

// afterWindow returns when a run starts that a blackout window with this end delays: one offset after the end. If another
// window begins before that, that window delays the run too, unless the run would start more than maxCarry after the end
// or beyond its deadline. In these two cases the run starts before the other window begins, at the offset modulo the time
// between the two windows, so that the runs are spread there as well.
//
// If two windows delay a run, afterWindow returns the same time for both ends. So the decision stays the same from one
// reconcile to the next, and no run is delayed for ever.
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

// nextStart returns when the first of the future runs can start. scheduled is the scheduled time of the first of them. A
// later run may start earlier than that run: it may become due after a blackout window that delays the first run.
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
		scheduled = in.next(end.Add(-in.Offset-1), location) // the first run that is due at or after the end
	}
	return delayed
}

// earlier returns the earlier of two times. A zero time does not count.
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
