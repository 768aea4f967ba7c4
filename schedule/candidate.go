package schedule

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Candidate is one object's claim to run, as its status tells: it waits for its turn since a run is due, or it is running. Objects
// that do neither have no turn.
type Candidate struct {
	Object  types.NamespacedName
	Due     time.Time // the time that is due; of no meaning while running
	Running bool
}

// MayStart says whether an object that waits may start, when at most so many objects run at once: if those that run, and
// those that wait and come before it, are fewer. The oldest due comes first, equals by namespace and name. All may hold the
// object itself, whose own claim there is not counted. A limit of zero or less is none; who is running may go on.
//
// It is a pure function over statuses, so the cap holds over a restart, and without a queue in memory. A cache that is a
// little behind does no harm: a run that it does not show yet still waits in it, at its old place, and counts. Only an
// object that comes in between with an older due time can then start beyond the limit.
//
// Who may not start yet asks again when another one's run ends.
func MayStart(limit int, me Candidate, all iter.Seq[Candidate]) bool {
	if limit <= 0 || me.Running {
		return true
	}
	before := 0
	for t := range all {
		if t.Object != me.Object && (t.Running || t.compare(me) < 0) {
			before++
		}
	}
	return before < limit
}

// NextToStart names those that wait and may start, the oldest due first: whom to wake when a run ends. For a limit of zero or
// less it names nobody, since nobody waits for another one then.
func NextToStart(limit int, all iter.Seq[Candidate]) []types.NamespacedName {
	if limit <= 0 {
		return nil
	}
	var waiting []Candidate
	free := limit
	for t := range all {
		if t.Running {
			free--
		} else {
			waiting = append(waiting, t)
		}
	}
	slices.SortFunc(waiting, Candidate.compare)
	var names []types.NamespacedName
	for _, t := range waiting[:min(len(waiting), max(free, 0))] {
		names = append(names, t.Object)
	}
	return names
}

func (t Candidate) compare(other Candidate) int {
	return cmp.Or(
		t.Due.Compare(other.Due),
		cmp.Compare(t.Object.Namespace, other.Object.Namespace),
		cmp.Compare(t.Object.Name, other.Object.Name),
	)
}
