package external

import "time"

// wanted is what is desired of an object, beside its keys.
type wanted struct {
	policy
	version string

	every        time.Duration // the interval of the object
	invalidEvery bool          // the annotation has no interval
}

// isOutdated reports whether the things have to be updated, since what is desired is not what was written last.
func (w *wanted) isOutdated(r *Record) bool { return w.mayUpdate() && r.Version != w.version }

// untilNext returns the time until the next observation. If the API was behind, it is looked at once more: what [Resource.Observed] was told is
// of the past.
func (w *wanted) untilNext(behind bool) time.Duration {
	if behind {
		return min(firstLook, w.every)
	}
	return w.every
}
