package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Operations counts what the operator did in a run. The run's lock guards it.
type Operations struct {
	Created  map[request.ObjectID]bool
	Writes   map[request.ObjectID]int // writes that changed the object
	Deleted  map[request.ObjectID]int
	Unnamed  generated                // objects with generated names
	Rollouts map[request.ObjectID]int // changes of its pod template; for a Job or a Pod: starts after a deletion by the operator
	Effects  int                      // effects that changed something outside of the cluster
}

// NewOperations returns empty counts.
func NewOperations() Operations {
	return Operations{Created: map[request.ObjectID]bool{}, Writes: map[request.ObjectID]int{}, Deleted: map[request.ObjectID]int{}, Rollouts: map[request.ObjectID]int{}, Unnamed: newGenerated()}
}

// Harmful returns a copy of the counts that must not exceed the counts of the run without faults.
func (o *Operations) Harmful() Operations {
	return Operations{Deleted: maps.Clone(o.Deleted), Rollouts: maps.Clone(o.Rollouts), Unnamed: o.Unnamed.clone()}
}

// createsAndKeeps reports whether the operator created an object and never deleted it.
func (o *Operations) createsAndKeeps(id request.ObjectID) bool {
	return o.Created[id] && o.Deleted[id] == 0
}

// SortedIDs returns the objects that are counted, sorted, so that the same run has the same error each time.
func SortedIDs(counts map[request.ObjectID]int) []request.ObjectID {
	return slices.SortedFunc(maps.Keys(counts), func(a, b request.ObjectID) int { return strings.Compare(a.String(), b.String()) })
}

// RolloutFormat returns the format of the error about an object that is rolled out more often than without faults: its pod template is
// changed, or a Job or Pod runs again. The arguments are the object, how often it was rolled out, and how often without faults.
func RolloutFormat(id request.ObjectID) string {
	if Runs(id) {
		return "it runs %s again %s, without faults %s"
	}
	return "it changes the pod template of %s %s, without faults %s"
}

// extraWrites is how many writes of an object are allowed with a fault, beyond twice as many as without it.
const extraWrites = 10

// CheckWrites returns an error for each object that was written much more often than without faults.
func (o *Operations) CheckWrites(writes map[request.ObjectID]int) (errs []error) {
	for _, id := range SortedIDs(o.Writes) {
		if n, without := o.Writes[id], writes[id]; n > 2*without+extraWrites {
			errs = append(errs, failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("%s was written %d times, without faults %d times: it must be at most %d", id, n, without, 2*without+extraWrites)})
		}
	}
	return errs
}

// Runs reports whether an object of the kind runs once to its end: a Job or a Pod.
func Runs(id request.ObjectID) bool {
	return id.Kind.Group == "batch" && id.Kind.Kind == "Job" || id.Kind.Group == "" && id.Kind.Kind == "Pod"
}
