package schedule

import "time"

// mostCounted is where counting ends that has to walk.
const mostCounted = 100

// following is the first time after t, or the zero time: also of Times that answer with what is not after t.
func following(times Times, t time.Time) time.Time {
	if next := times.Next(t); next.After(t) {
		return next
	}
	return time.Time{}
}

// search finds the last time after one moment and not after another, knowing only what comes next: Next answers with a time
// until then just as long as it is asked about one before the last. So it looks back from the end, twice as far each time,
// until it meets a time, and then halves what is left. That is at most 28 steps and, for up to 292 years, 63 more.
func search(times Times, after, until time.Time) (latest time.Time, count int) {
	comes := func(t time.Time) bool {
		next := following(times, t)
		found := !next.IsZero() && !next.After(until)
		if found {
			latest = next
		}
		return found
	}
	if !comes(after) {
		return time.Time{}, 0
	}
	first, beyond := latest, until
	for back := time.Minute; back > 0; back *= 2 { // until it overflows
		t := until.Add(-back)
		if !t.After(first) || comes(t) {
			break
		}
		beyond = t
	}
	for beyond.Sub(latest) > 1 {
		if t := latest.Add(beyond.Sub(latest) / 2); !comes(t) {
			beyond = t
		}
	}
	comes(latest)
	return latest, walk(times, first, latest)
}

// walk counts the times from one to another, up to a limit.
func walk(times Times, first, last time.Time) int {
	count := 1
	for t := first; t.Before(last) && count < mostCounted; count++ {
		t = times.Next(t)
	}
	return count
}
