package schedule

import (
	"math"
	"time"
)

// If several blackout windows delay a run, maxCarry is the longest time from the end of the first one to the start of
// the run.
const maxCarry = 24 * time.Hour

// startTime returns when a due run starts that has not started until now. If a blackout window ended after its due time,
// or now is in a window, the run starts after the last such window. Otherwise it starts at its due time. Whether the
// operator was up during the window has no effect.
func (in *Input) startTime(scheduled, now time.Time) time.Time {
	due := scheduled.Add(in.Offset)
	if end := in.BlackoutWindows.lastEnd(now, due); end.After(due) {
		return in.afterWindow(end, scheduled)
	}
	return due
}

// afterWindow returns when a run starts that a blackout window with this end delays: at the end plus the offset. If
// another window begins before that, that window delays the run too. But if the run would then start more than maxCarry
// after the end, or after its deadline, it starts before the other window begins: at the end plus the offset modulo the
// time between the two windows. So the runs of many objects are spread there as well.
//
// If two windows delay a run, afterWindow returns the same time for the end of either window. So the decision stays the
// same from one reconcile to the next, and no run is delayed for ever.
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

// nextStart returns when the first of the future runs can start. scheduled is the earliest scheduled time of these runs.
// A later run may start earlier: if a blackout window delays the first run, another run may become due after the window
// and start at once.
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

// earlier returns the earlier of two times. It ignores a zero time.
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
