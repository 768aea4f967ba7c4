package simulation

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// operations counts what the operator did in a run. The run's lock guards it.
type operations struct {
	created  map[objectID]bool
	writes   map[objectID]int // that changed the object
	deleted  map[objectID]int
	rollouts map[objectID]int // changes of its pod template, or Jobs and Pods created again
	effects  int              // that changed something outside of the cluster
}

func newOperations() operations {
	return operations{created: map[objectID]bool{}, writes: map[objectID]int{}, deleted: map[objectID]int{}, rollouts: map[objectID]int{}}
}

// harmful returns a copy of what must not happen more often than without faults.
func (o *operations) harmful() operations {
	return operations{deleted: maps.Clone(o.deleted), rollouts: maps.Clone(o.rollouts)}
}

// neverDeletes reports whether the operator creates an object and never deletes it.
func (o *operations) neverDeletes(id objectID) bool { return o.created[id] && o.deleted[id] == 0 }

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
	return err
}

// carryOutExternal carries out an effect or a query, without the lock: it is the test author's code.
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

// externalState returns what is outside of the cluster as JSON, "" for nothing.
func (r *Run) externalState() string {
	if r.external == nil {
		return ""
	}
	return state.EncodeExternal(r.external.State())
}

// countChange counts a change that a request made.
func (r *Run) countChange(c *call, change *memoryserver.Change) {
	id := objectID{change.GVK, change.Key}
	if change.New != nil && id.kind.Kind == "Secret" {
		r.history.present[id] = change.New // from now on what it holds must not be written elsewhere
	}
	r.operations.writes[id]++
	if change.Type == watch.Added {
		if r.operations.created[id] = true; id.runsToCompletion() && r.operations.deleted[id] > 0 { // the operator has deleted one of that name
			r.operations.rollouts[id]++
		}
		if r.timeTravel.happened {
			r.timeTravel.created[change.New.GetUID()] = true
		}
	}
	if c.isDeletion() && !r.timeTravel.created[change.Old.GetUID()] {
		r.operations.deleted[id]++
		if r.baseline != nil && r.baseline.operations.neverDeletes(id) && !r.hasGeneratedName(id) {
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

// replacesPods reports whether a change replaces the pods of a workload. A process that sees the past rightly goes
// back to an earlier template, and forward again, so that does not count.
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

// templateOf returns a workload's pod template, nil for other objects.
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

// runsToCompletion reports whether objects of the kind do their work when they are created.
func (o *objectID) runsToCompletion() bool {
	return o.kind.Group == "batch" && o.kind.Kind == "Job" || o.kind.Group == "" && o.kind.Kind == "Pod"
}

// checkOperations returns an error if the operator has done more often than without faults what does harm each time:
// replaced pods, run a Job again, or deleted something.
func (r *Run) checkOperations(without *operations) error {
	for id, n := range r.operations.rollouts {
		if want := without.rollouts[id]; n > want {
			return fmt.Errorf(id.rolloutFormat(), id, Plural(n, "time"), Plural(want, "time"))
		}
	}
	for id, n := range r.operations.deleted {
		if want := without.deleted[id]; n > want && r.baseline.operations.created[id] && !r.hasGeneratedName(id) {
			return fmt.Errorf("it deletes %s %s, without faults %s", id, Plural(n, "time"), Plural(want, "time"))
		}
	}
	return nil
}

// rolloutFormat is the message for a rollout: of which object, how often, and how often without faults.
func (o *objectID) rolloutFormat() string {
	if o.runsToCompletion() {
		return "it runs %s again %s, without faults %s"
	}
	return "it changes the pod template of %s %s, without faults %s"
}

// extraWrites is how many writes of an object a fault may cost beyond twice as many as without it.
const extraWrites = 10

// checkWrites returns an error for each object that was written much more often than without faults.
func (r *Run) checkWrites() (errs []error) {
	for id, n := range r.operations.writes {
		if without := r.baseline.operations.writes[id]; n > 2*without+extraWrites {
			errs = append(errs, fmt.Errorf("%s was written %d times, without faults %d times: it must be at most %d", id, n, without, 2*without+extraWrites))
		}
	}
	return errs
}
