package external

import "time"

// wanted is the desired state of an object, except its keys.
type wanted struct {
	policy
	version string

	every        time.Duration // the interval of observations of the object
	invalidEvery bool          // the interval in the annotation is invalid
}

// isOutdated reports whether the things need an update because they were written with another version than the desired one.
func (w *wanted) isOutdated(r *Record) bool { return w.mayUpdate() && r.Version != w.version }

// untilNext returns the time until the next observation. If the API still showed an old state after the last update, the next observation
// comes soon, because [Resource.Observed] has got that old state.
func (w *wanted) untilNext(behind bool) time.Duration {
	if behind {
		return min(firstLook, w.every)
	}
	return w.every
}
