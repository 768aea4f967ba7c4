package schedule

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Candidate is an object that is running, or whose run is due and waits to start. [Status.Candidate] returns it for a
// status. All other objects are not candidates.
type Candidate struct {
	Object  types.NamespacedName // the object that is running or due
	Due     time.Time            // the NextScheduleTime of its [Status], which is the time of the due run without the offset; ignored if Running
	Running bool                 // the object has started a run that has not finished
}

// MayStart reports whether the candidate may start, if at most limit objects may run at once. It may start if fewer than
// limit other candidates are running or come before it. The candidate with the earliest Due comes first. Candidates with
// the same Due are ordered by namespace and name. A limit of zero or less means no limit. For a candidate that is running,
// MayStart returns true.
//
// The sequence all yields the candidates of all objects. It may contain the candidate itself, which is not counted. MayStart
// stops reading it when it has found limit others, so it costs little even if very many objects are due at once.
//
// MayStart is a pure function over statuses, so the limit also holds after a restart, without a queue in memory. A cache
// that is behind does little harm: if it does not show yet that an object runs, the object is still a waiting candidate,
// and counts. The limit is exceeded only if another object with an earlier Due appears before the cache shows the run.
//
// If a candidate may not start, call MayStart again when the run of another candidate ends; see [NextToStart].
func (c Candidate) MayStart(limit int, all iter.Seq[Candidate]) bool {
	if limit <= 0 || c.Running {
		return true
	}
	before := 0
	for other := range all {
		if other.Object != c.Object && (other.Running || other.compare(c) < 0) {
			if before++; before == limit {
				return false
			}
		}
	}
	return true
}

// NextToStart returns the waiting candidates that may start, the earliest Due first. Reconcile them when a run
// ends. With a limit of zero or less it returns none, because no candidate waits for another one.
func NextToStart(limit int, all iter.Seq[Candidate]) []types.NamespacedName {
	if limit <= 0 {
		return nil
	}
	var waiting []Candidate
	free := limit
	for c := range all {
		if c.Running {
			free--
		} else {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, Candidate.compare)
	var names []types.NamespacedName
	for _, c := range waiting[:min(len(waiting), max(free, 0))] {
		names = append(names, c.Object)
	}
	return names
}

// compare orders waiting candidates: the earliest Due first, then by namespace and name.
func (c Candidate) compare(other Candidate) int {
	return cmp.Or(
		c.Due.Compare(other.Due),
		cmp.Compare(c.Object.Namespace, other.Object.Namespace),
		cmp.Compare(c.Object.Name, other.Object.Name),
	)
}
