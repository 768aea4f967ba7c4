package world

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Counter counts what the operator did. The run's lock guards it.
type Counter struct {
	result.Operations
	SawPast      bool               // the cache of a process has shown the past
	createdSince map[types.UID]bool // what the operator has created since then: it may delete these objects when its cache shows the present
}

// isDeletion reports whether a change is a deletion by the operator that counts as harm. A deletion does not count if the object is being
// deleted already, if it is a Job that has never run, or if the operator created it after its cache had shown the past.
func (o *Counter) isDeletion(c *request.Call, change *memoryserver.Change) bool {
	return c.IsDeletion() && change.Old.GetDeletionTimestamp() == nil && !o.createdSince[change.Old.GetUID()] && !hasNeverRun(change.Old)
}

// CarryOut carries out a request, and counts what it changed. The caller holds the lock.
func (w *World) CarryOut(c *request.Call, lost bool, do func(lost bool) error) error {
	if c.External != "" {
		return w.carryOutExternal(c, lost, do)
	}
	before := w.Server.Revision()
	err := do(lost)
	changes := w.Server.Changes(before)
	for i := range changes {
		c.Changed = true
		w.countChange(c, &changes[i])
	}
	if c.IsDeletion() { // the operator may create an object of the same name next
		w.Others.ReleaseFinalizers()
	}
	return err
}

// carryOutExternal carries out an effect or a query. The caller holds the lock. While do runs, the lock is released: do is code of the
// test's author and may wait.
func (w *World) carryOutExternal(c *request.Call, lost bool, do func(lost bool) error) error {
	w.externalCalls++
	before := w.ExternalState()
	err := func() error {
		w.Mu.Unlock()
		defer w.Mu.Lock()
		return do(lost)
	}()
	if c.Changed = w.ExternalState() != before; c.Changed {
		w.Counter.Effects++
	}
	return err
}

// countChange counts a change that a request has made. It also checks whether an operator must not make this change.
func (w *World) countChange(c *request.Call, change *memoryserver.Change) {
	id := request.ObjectID{Kind: change.GVK, Name: change.Key}
	if change.New != nil && id.Kind.Kind == "Secret" {
		w.History.put(id, change.New) // from this moment on the values of a Secret must not appear elsewhere
	}
	if !w.IsHeartbeat(change) {
		w.Counter.Writes[id]++
	}
	if w.References == nil && w.RealTime == "" {
		if path := realTimeIn(change); path != "" {
			w.RealTime = fmt.Sprintf("%s writes one to %s", c, path)
		}
	}
	w.Rights.AddChange(c, change)
	w.countGenerated(c, change)
	if change.Type == watch.Added {
		w.Counter.Created[id] = true
		if w.Counter.SawPast {
			w.Counter.createdSince[change.New.GetUID()] = true
		}
	}
	if startsWork(id, change) && w.Counter.Deleted[id] > 0 { // the operator has deleted an object of that name
		w.Counter.Rollouts[id]++
	}
	if w.Counter.isDeletion(c, change) {
		if _, generated := result.GroupOf(change.GVK, change.Old); !generated {
			w.Counter.Deleted[id]++
		}
		if w.References != nil && w.References.CreatesAndKeeps(id) && !w.History.hasGeneratedName(id) {
			w.Failures.AddLocked(fmt.Errorf("it deletes %s, which it never does without faults", id))
		}
	}
	if w.replacesPods(change) {
		w.Counter.Rollouts[id]++
	}
	if err := w.History.findLeak(change); err != nil {
		w.Failures.AddLocked(err)
	}
}

// replacesPods reports whether a change replaces the pods of a workload. If a process has seen an old cache, a change to a template that
// the workload had before does not count: the operator may change the template back, and later forward again.
func (w *World) replacesPods(c *memoryserver.Change) bool {
	if c.Old == nil || c.New == nil {
		return false
	}
	was, is := templateOf(c.Old), templateOf(c.New)
	if is == nil || equality.Semantic.DeepEqual(was, is) {
		return false
	}
	return !w.Counter.SawPast || !slices.ContainsFunc(w.History.Changes, func(earlier memoryserver.Change) bool {
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

// startsWork reports whether a Job or a Pod starts its work with the change: it is created, or no longer suspended.
func startsWork(id request.ObjectID, c *memoryserver.Change) bool {
	return result.Runs(id) && c.New != nil && !isSuspended(c.New) && (c.Old == nil || isSuspended(c.Old))
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

// CheckOperations returns an error if the operator has done harm more often than without faults: it has replaced pods, run a Job again, or
// deleted an object.
func (w *World) CheckOperations(without *result.Operations) error {
	for _, id := range result.SortedIDs(w.Counter.Rollouts) {
		n := w.Counter.Rollouts[id]
		if want := without.Rollouts[id]; n > want {
			return fmt.Errorf(result.RolloutFormat(id), id, text.Plural(n, "time"), text.Plural(want, "time"))
		}
	}
	if err := w.Counter.Unnamed.CheckDeletions(&without.Unnamed, &w.References.Baseline.Operations.Unnamed); err != nil {
		return err
	}
	for _, id := range result.SortedIDs(w.Counter.Deleted) {
		n := w.Counter.Deleted[id]
		if want := without.Deleted[id]; n > want && w.References.Baseline.Operations.Created[id] && !w.History.hasGeneratedName(id) {
			return fmt.Errorf("it deletes %s %s, without faults %s", id, text.Plural(n, "time"), text.Plural(want, "time"))
		}
	}
	return nil
}

// countGenerated counts a creation or a deletion of an object with a generated name. If the object's group had more objects than at any
// time without faults, a deletion does not count: the operator rightly removes what a fault made it create twice. The caller holds the
// lock.
func (w *World) countGenerated(c *request.Call, change *memoryserver.Change) {
	if change.Type == watch.Added {
		if g, ok := result.GroupOf(change.GVK, change.New); ok {
			w.Counter.Unnamed.Most[g] = max(w.Counter.Unnamed.Most[g], w.History.countGroup(g))
		}
		return
	}
	g, ok := result.GroupOf(change.GVK, change.Old)
	if !ok || !w.Counter.isDeletion(c, change) {
		return
	}
	if w.References != nil && w.History.countGroup(g)+1 > w.References.Baseline.Operations.Unnamed.Most[g] {
		return
	}
	w.Counter.Unnamed.Deleted[g]++
}
