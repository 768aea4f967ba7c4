package schedule

import "time"

// maxCounted is the largest number of times that are counted if each needs a call of Next.
const maxCounted = 100

// nextAfter returns the first time after t. If there is none, or Next returns a time that is not after t, it returns the
// zero time.
func nextAfter(times times, t time.Time) time.Time {
	if next := times.Next(t); next.After(t) {
		return next
	}
	return time.Time{}
}

// search returns the last scheduled time in (after, until], and the number of scheduled times in that range, up to a
// limit. It needs only the method Next. Next(t) returns a time in the range if and only if t is before the last time. So
// search looks back from the end, twice as far each time, until Next returns a time in the range, and then bisects. That
// takes at most 28 steps and, for a range of up to 292 years, 63 more.
func search(times times, after, until time.Time) (latest time.Time, count int) {
	anyAfter := func(t time.Time) bool {
		next := nextAfter(times, t)
		found := !next.IsZero() && !next.After(until)
		if found {
			latest = next
		}
		return found
	}
	if !anyAfter(after) {
		return time.Time{}, 0
	}
	first, beyond := latest, until
	for back := time.Minute; back > 0; back *= 2 { // the loop ends when back overflows
		t := until.Add(-back)
		if !t.After(first) || anyAfter(t) {
			break
		}
		beyond = t
	}
	for beyond.Sub(latest) > 1 {
		if t := latest.Add(beyond.Sub(latest) / 2); !anyAfter(t) {
			beyond = t
		}
	}
	anyAfter(latest)
	return latest, countFrom(times, first, latest)
}

// countFrom returns how many times there are from first to last, up to maxCounted.
func countFrom(times times, first, last time.Time) int {
	count := 1
	for t := first; t.Before(last) && count < maxCounted; count++ {
		t = times.Next(t)
	}
	return count
}
