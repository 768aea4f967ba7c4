package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// operations counts what the operator did in a run. The run's lock guards it.
type operations struct {
	created  map[objectID]bool
	writes   map[objectID]int // only those that changed the object
	deleted  map[objectID]int
	unnamed  generated        // objects with generated names
	rollouts map[objectID]int // changes of its pod template; for a Job or a Pod, starts after a deletion by the operator
	effects  int              // only those that changed something outside of the cluster
}

func newOperations() operations {
	return operations{created: map[objectID]bool{}, writes: map[objectID]int{}, deleted: map[objectID]int{}, rollouts: map[objectID]int{}, unnamed: newGenerated()}
}

// harmful returns a copy of the counts that must not exceed the counts of the run without faults.
func (o *operations) harmful() operations {
	return operations{deleted: maps.Clone(o.deleted), rollouts: maps.Clone(o.rollouts), unnamed: o.unnamed.clone()}
}

// createsAndKeeps reports whether the operator created an object and never deleted it.
func (o *operations) createsAndKeeps(id objectID) bool { return o.created[id] && o.deleted[id] == 0 }

// carryOut carries out a request, and counts what it changed. The caller holds the lock.
func (r *Run) carryOut(c *call, lost bool, do func(lost bool) error) error {
	if c.External != "" {
		return r.carryOutExternal(c, lost, do)
	}
	before := r.server.Revision()
	err := do(lost)
	changes := r.server.Changes(before)
	for i := range changes {
		c.Changed = true
		r.countChange(c, &changes[i])
	}
	if c.isDeletion() { // the operator may create an object of the same name next
		r.releaseFinalizers()
	}
	return err
}

// carryOutExternal carries out an effect or a query. The caller holds the lock. It is released while do runs, since do
// is the test author's code and may wait.
func (r *Run) carryOutExternal(c *call, lost bool, do func(lost bool) error) error {
	before := r.externalState()
	err := func() error {
		r.mu.Unlock()
		defer r.mu.Lock()
		return do(lost)
	}()
	if c.Changed = r.externalState() != before; c.Changed {
		r.operations.effects++
	}
	return err
}

// externalState returns the state outside of the cluster as JSON, "" if the scenario has no External.
func (r *Run) externalState() string {
	if r.external == nil {
		return ""
	}
	return state.EncodeExternal(r.external.State())
}

// countChange counts a change that a request made, and checks it for what an operator must not do.
func (r *Run) countChange(c *call, change *memoryserver.Change) {
	id := objectID{change.GVK, change.Key}
	if change.New != nil && id.kind.Kind == "Secret" {
		r.history.put(id, change.New) // from now on its values must not appear elsewhere
	}
	r.operations.writes[id]++
	r.rights.addChange(c, change)
	r.countGenerated(c, change)
	if change.Type == watch.Added {
		r.operations.created[id] = true
		if r.timeTravel.happened {
			r.timeTravel.created[change.New.GetUID()] = true
		}
	}
	if id.startsWork(change) && r.operations.deleted[id] > 0 { // the operator has deleted one of that name
		r.operations.rollouts[id]++
	}
	if c.isDeletion() && !r.timeTravel.created[change.Old.GetUID()] && !hasNeverRun(change.Old) {
		if _, generated := groupOf(change.GVK, change.Old); !generated {
			r.operations.deleted[id]++
		}
		if r.references != nil && r.references.createsAndKeeps(id) && !r.hasGeneratedName(id) {
			r.failLocked(fmt.Errorf("it deletes %s, which it never does without faults", id))
		}
	}
	if r.replacesPods(change) {
		r.operations.rollouts[id]++
	}
	if err := r.findLeak(change); err != nil {
		r.failLocked(err)
	}
}

// replacesPods reports whether a change replaces the pods of a workload. A process that sees the past rightly changes
// the template back to an earlier one, and later forward again, so this does not count.
func (r *Run) replacesPods(c *memoryserver.Change) bool {
	if c.Old == nil || c.New == nil {
		return false
	}
	was, is := templateOf(c.Old), templateOf(c.New)
	if is == nil || equality.Semantic.DeepEqual(was, is) {
		return false
	}
	return !r.timeTravel.happened || !slices.ContainsFunc(r.history.changes, func(earlier memoryserver.Change) bool {
		return earlier.GVK == c.GVK && earlier.Key == c.Key && earlier.New != nil && equality.Semantic.DeepEqual(templateOf(earlier.New), is)
	})
}

// templateOf returns the pod template of a Deployment, StatefulSet or DaemonSet, nil for other objects.
func templateOf(obj client.Object) *corev1.PodTemplateSpec {
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return &workload.Spec.Template
	case *appsv1.StatefulSet:
		return &workload.Spec.Template
	case *appsv1.DaemonSet:
		return &workload.Spec.Template
	}
	return nil
}

// hasGeneratedName reports whether the API server generated the object's name.
func (r *Run) hasGeneratedName(id objectID) bool {
	obj := r.history.present[id]
	return obj != nil && obj.GetGenerateName() != ""
}

// runs reports whether an object of the kind does its work once.
func (o *objectID) runs() bool {
	return o.kind.Group == "batch" && o.kind.Kind == "Job" || o.kind.Group == "" && o.kind.Kind == "Pod"
}

// startsWork reports whether a Job or a Pod starts its work with the change: it is created, or no longer suspended.
func (o *objectID) startsWork(c *memoryserver.Change) bool {
	return o.runs() && c.New != nil && !isSuspended(c.New) && (c.Old == nil || isSuspended(c.Old))
}

func isSuspended(obj client.Object) bool {
	job, ok := obj.(*batchv1.Job)
	return ok && job.Spec.Suspend != nil && *job.Spec.Suspend
}

// hasNeverRun reports whether an object is a Job that was created suspended, and has never been started.
func hasNeverRun(obj client.Object) bool {
	job, ok := obj.(*batchv1.Job)
	return ok && isSuspended(job) && job.Status.StartTime == nil
}

// checkOperations returns an error if the operator has, more often than without faults, replaced pods, run a Job again,
// or deleted an object. Each of these does harm.
func (r *Run) checkOperations(without *operations) error {
	for _, id := range sortedIDs(r.operations.rollouts) {
		n := r.operations.rollouts[id]
		if want := without.rollouts[id]; n > want {
			return fmt.Errorf(id.rolloutFormat(), id, Plural(n, "time"), Plural(want, "time"))
		}
	}
	if err := r.operations.unnamed.checkDeletions(&without.unnamed, &r.references.baseline.operations.unnamed); err != nil {
		return err
	}
	for _, id := range sortedIDs(r.operations.deleted) {
		n := r.operations.deleted[id]
		if want := without.deleted[id]; n > want && r.references.baseline.operations.created[id] && !r.hasGeneratedName(id) {
			return fmt.Errorf("it deletes %s %s, without faults %s", id, Plural(n, "time"), Plural(want, "time"))
		}
	}
	return nil
}

// sortedIDs returns the objects that are counted, sorted, so that the same run has the same error each time.
func sortedIDs(counts map[objectID]int) []objectID {
	return slices.SortedFunc(maps.Keys(counts), func(a, b objectID) int { return strings.Compare(a.String(), b.String()) })
}

// rolloutFormat returns the format of the error about a rollout. Its arguments are the object, how often it happened, and
// how often without faults.
func (o *objectID) rolloutFormat() string {
	if o.runs() {
		return "it runs %s again %s, without faults %s"
	}
	return "it changes the pod template of %s %s, without faults %s"
}

// extraWrites is how many writes of an object are allowed with a fault, beyond twice as many as without it.
const extraWrites = 10

// checkWrites returns an error for each object that was written much more often than without faults.
func (r *Run) checkWrites() (errs []error) {
	writes := r.references.writes()
	for _, id := range sortedIDs(r.operations.writes) {
		if n, without := r.operations.writes[id], writes[id]; n > 2*without+extraWrites {
			errs = append(errs, finding{kinds.DoesNotRest, fmt.Errorf("%s was written %d times, without faults %d times: it must be at most %d", id, n, without, 2*without+extraWrites)})
		}
	}
	return errs
}
