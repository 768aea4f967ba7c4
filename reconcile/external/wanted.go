package external

import "time"

// wanted is the desired state of an object, except its keys.
type wanted struct {
	policy
	version string

	every        time.Duration // the interval of the object
	invalidEvery bool          // the value of the annotation is invalid
}

// isOutdated reports whether the things have to be updated because the desired version is not the version that was written last.
func (w *wanted) isOutdated(r *Record) bool { return w.mayUpdate() && r.Version != w.version }

// untilNext returns the time until the next observation. If the API did not show the last update, the next observation comes soon, because
// [Resource.Observed] has got an old state.
func (w *wanted) untilNext(behind bool) time.Duration {
	if behind {
		return min(firstLook, w.every)
	}
	return w.every
}
