package reconciletest

import (
	"fmt"
	"runtime"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// point is where a fault can strike.
type point struct {
	request *Request // nil: a change
	name    string
	nth     int
	next    bool // the user does something after the present action
	watched bool // the process's cache has the kind
}

// record puts a request into the ledger and the trace. The caller holds the lock.
func (r *run) record(p *Process, request *Request) {
	request.Process, request.probe = p.number, r.probing
	if p.pass != nil {
		request.Pass = p.pass.number
		r.bound(p, request)
	}
	r.ledger.add(request)
	r.trace.add(row{pass: request.Pass, request: request})
}

// maxRequests is how many a pass may send, reads of the cache among them.
const maxRequests = 10_000

// bound ends a pass that never stops to send requests. It may not listen to errors, so its goroutine ends here.
func (r *run) bound(p *Process, request *Request) {
	if p.pass.requests++; p.pass.requests <= maxRequests {
		return
	}
	r.failLocked(fmt.Errorf("pass %d over %s %s does not end: it has sent %d requests, the last one %s",
		p.pass.number, p.pass.controller.name, nameOf(p.pass.request.NamespacedName), maxRequests, request))
	p.die()
	runtime.Goexit()
}

// strikes notes that a request comes to its point, and gives the fault that is planned there, or "".
func (r *run) strikes(p *Process, request *Request) FaultKind {
	name := request.String()
	r.nth[name]++
	at := point{request, name, r.nth[name], r.hasNext(), p.cache.watches(request.Kind)}
	r.points = append(r.points, at)
	fault := r.planned(name, at.nth)
	switch {
	case fault == LeaderChange && (request.Pass == 0 || p != r.process):
		return "" // there is no pass to finish, or it is not the leader's
	case fault == "", !slices.Contains(at.faults(), fault):
		return ""
	}
	r.strike(fault, name, at.nth)
	request.Fault = string(fault)
	return fault
}

func (r *run) planned(name string, nth int) FaultKind {
	for _, f := range r.faults {
		if f.At == name && f.Nth == nth {
			return f.Kind
		}
	}
	return ""
}

func (r *run) strike(fault FaultKind, name string, nth int) {
	r.struck = append(r.struck, Fault{fault, name, nth})
}

// carryOut does it, and notes what changed by it. The caller holds the lock.
func (r *run) carryOut(request *Request, lost bool, do func(lost bool) error) error {
	if request.External != "" {
		return r.carryOutside(request, lost, do)
	}
	before := r.server.Revision()
	err := do(lost)
	changes := r.server.Changes(before)
	for i := range changes {
		request.Changed = true
		key := madeKey{changes[i].GVK, changes[i].Key}
		if changes[i].New != nil && key.kind.Kind == "Secret" {
			r.present[key] = changes[i].New // what it holds must not be written elsewhere from now on
		}
		r.writes[key]++
		if changes[i].Type == watch.Added {
			if r.made[key] = true; key.runsOnce() && r.deleted[key] > 0 { // it has deleted one of that name itself
				r.rollouts[key]++
			}
			if r.returned {
				r.undone[changes[i].New.GetUID()] = true
			}
		}
		if isDeletion := request.Verb == "delete" || request.Verb == "deletecollection"; isDeletion && !r.undone[changes[i].Old.GetUID()] {
			r.deleted[key]++
			if r.baseline != nil && r.baseline.keeps(key) && !r.isNamedByServer(key) {
				r.failLocked(fmt.Errorf("it deletes %s %s, which it never does without faults", key.kind.Kind, nameOf(key.name)))
			}
		}
		if r.rollsOut(&changes[i]) {
			r.rollouts[key]++
		}
		if err := r.leak(&changes[i]); err != nil {
			r.failLocked(err)
		}
	}
	return err
}

// rollsOut reports whether a change replaces the pods of a workload. To one that sees the past, what was wanted then is
// wanted now: that it goes back to an earlier template, and forward again, is no fault of it.
func (r *run) rollsOut(c *memoryserver.Change) bool {
	if c.Old == nil || c.New == nil {
		return false
	}
	was, is := template(c.Old), template(c.New)
	if is == nil || equality.Semantic.DeepEqual(was, is) {
		return false
	}
	return !r.returned || !slices.ContainsFunc(r.changes, func(earlier memoryserver.Change) bool {
		return earlier.GVK == c.GVK && earlier.Key == c.Key && earlier.New != nil && equality.Semantic.DeepEqual(template(earlier.New), is)
	})
}

// template gives a workload's pod template, or nil.
func template(obj client.Object) *corev1.PodTemplateSpec {
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

func (r *run) carryOutside(request *Request, lost bool, do func(lost bool) error) error {
	before := stateOf(r.outside)
	err := func() error {
		r.mu.Unlock() // the effect is somebody else's code
		defer r.mu.Lock()
		return do(lost)
	}()
	request.Changed = stateOf(r.outside) != before
	if request.Changed {
		r.effects++
	}
	return err
}

// isNamedByServer reports whether an object got its name by chance.
func (r *run) isNamedByServer(key madeKey) bool {
	obj := r.present[key]
	return obj != nil && obj.GetGenerateName() != ""
}
