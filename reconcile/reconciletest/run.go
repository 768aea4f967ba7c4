package reconciletest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// run is one life of the scenario, with some faults or without. It happens inside a bubble of
// testing/synctest, in which it may call nothing that waits for the real world.
type run struct {
	scenario *Scenario
	server   *memoryserver.Server
	user     client.WithWatch
	outside  Outside
	baseline *result // the run without faults; nil if this is it
	faults   []Fault

	mu        sync.Mutex
	process   *Process // the leader
	processes int
	deposed   *deposed
	pass      int
	batch     int
	causing   string
	ledger    *Ledger
	trace     *trace
	nth       map[string]int // requests and changes of a name so far
	struck    []Fault
	made      map[madeKey]bool
	touched   []client.Object
	writes    map[madeKey]int // changes by the operator
	seen      int64           // the revision up to which present is told
	present   map[madeKey]client.Object
	changes   []memoryserver.Change // up to seen
	effects   int                   // that changed something outside
	points    []point
	failures  []error
	phases    []phase
	clean     bool             // no process has died
	away      bool             // it starts again only after the next action
	last      bool             // there is no next action
	deleted   map[madeKey]bool // by the operator
	rollouts  map[madeKey]int  // pod templates that the operator changed
}

// madeKey names an object.
type madeKey struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

// point is where a fault can strike.
type point struct {
	request *Request // nil: a change
	name    string
	nth     int
}

// pass is a pass that runs.
type pass struct {
	number     int
	controller *controller
	request    ctrl.Request
}

// deposed is an old leader that waits for its turn to finish.
type deposed struct {
	process *Process
	resume  chan struct{}
}

func newRun(s *Scenario, server *memoryserver.Server, faults []Fault, baseline *result) *run {
	r := &run{
		scenario: s, server: server, user: server.Client(), baseline: baseline, faults: faults,
		ledger: &Ledger{}, trace: &trace{}, nth: map[string]int{}, made: map[madeKey]bool{}, present: map[madeKey]client.Object{}, writes: map[madeKey]int{},
		clean: true, deleted: map[madeKey]bool{}, rollouts: map[madeKey]int{},
	}
	if s.Outside != nil {
		r.outside = s.Outside()
	}
	return r
}

// record puts a request into the ledger and the trace. The caller holds the lock.
func (r *run) record(p *Process, request *Request) {
	request.Process = p.number
	if p.pass != nil {
		request.Pass = p.pass.number
	}
	r.ledger.add(request)
	r.trace.add(row{pass: request.Pass, request: request})
}

// strikes notes that a request comes to its point, and gives the fault that is planned there, or "".
func (r *run) strikes(p *Process, request *Request) FaultKind {
	name := request.String()
	r.nth[name]++
	r.points = append(r.points, point{request, name, r.nth[name]})
	fault := r.planned(name, r.nth[name])
	switch {
	case fault == Deposed && (request.Pass == 0 || p != r.process):
		return "" // there is no pass to finish, or it is not the leader's
	case fault == Away && r.last:
		return "" // there is no next action
	}
	if fault != "" {
		request.Fault = string(fault)
	}
	return fault
}

func (r *run) planned(name string, nth int) FaultKind {
	for _, f := range r.faults {
		if f.At == name && f.Nth == nth {
			r.struck = append(r.struck, f)
			return f.Kind
		}
	}
	return ""
}

// carryOut does it, and notes what changed by it. The caller holds the lock.
func (r *run) carryOut(request *Request, lost bool, do func(lost bool) error) error {
	if request.Outside != "" {
		return r.carryOutside(request, lost, do)
	}
	before := r.server.Revision()
	err := do(lost)
	changes := r.server.Changes(before)
	for i := range changes {
		request.Changed = true
		key := madeKey{changes[i].GVK, changes[i].Key}
		r.writes[key]++
		if changes[i].Type == watch.Added {
			r.made[key] = true
		}
		if request.Verb == "delete" || request.Verb == "deletecollection" {
			r.deleted[key] = true
			if r.baseline != nil && r.baseline.keeps(key) && !r.isNamedByServer(key) {
				r.failLocked(fmt.Errorf("it deletes %s %s, which it never does without faults", key.kind.Kind, nameOf(key.name)))
			}
		}
		if changesTemplate(&changes[i]) {
			r.rollouts[key]++
		}
		if err := r.leak(&changes[i]); err != nil {
			r.failLocked(err)
		}
	}
	return err
}

// changesTemplate reports whether a change replaces the pods of a workload.
func changesTemplate(c *memoryserver.Change) bool {
	if c.Old == nil || c.New == nil {
		return false
	}
	switch now := c.New.(type) {
	case *appsv1.Deployment:
		return !equality.Semantic.DeepEqual(c.Old.(*appsv1.Deployment).Spec.Template, now.Spec.Template)
	case *appsv1.StatefulSet:
		return !equality.Semantic.DeepEqual(c.Old.(*appsv1.StatefulSet).Spec.Template, now.Spec.Template)
	case *appsv1.DaemonSet:
		return !equality.Semantic.DeepEqual(c.Old.(*appsv1.DaemonSet).Spec.Template, now.Spec.Template)
	}
	return false
}

func (r *run) carryOutside(request *Request, lost bool, do func(lost bool) error) error {
	before := stateOf(r.outside)
	r.mu.Unlock() // the effect is somebody else's code
	err := do(lost)
	r.mu.Lock()
	request.Changed = stateOf(r.outside) != before
	if request.Changed {
		r.effects++
	}
	return err
}

// fail ends the run with an error of the operator, or of the scenario.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

func (r *run) failLocked(err error) { r.failures = append(r.failures, err) }

func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) == 0 {
		return nil
	}
	return r.failures[0]
}

// isNamedByServer reports whether an object got its name by chance.
func (r *run) isNamedByServer(key madeKey) bool {
	obj := r.present[key]
	return obj != nil && obj.GetGenerateName() != ""
}

// moment differs when something has changed.
type moment struct {
	revision int64
	effects  int
}

func (r *run) moment() moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return moment{r.server.Revision(), r.effects}
}

// history gives all changes so far.
func (r *run) history() []memoryserver.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(slices.Clip(r.changes), r.server.Changes(r.seen)...)
}

func (r *run) beginPass(c *controller, request ctrl.Request, cause string) *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass++
	p := &pass{number: r.pass, controller: c, request: request}
	c.process.pass = p
	r.trace.add(row{pass: p.number, process: c.process.number, what: "pass over " + c.name + " " + nameOf(request.NamespacedName), answer: cause})
	return p
}

func (r *run) endPass(p *Process, ended *pass, result ctrl.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.pass = nil
	says := ""
	switch {
	case p.dead:
		return
	case err != nil && result.RequeueAfter > 0:
		says = "error: " + err.Error()
		r.failLocked(fmt.Errorf("pass %d returns RequeueAfter %s beside an error, and controller-runtime ignores the delay: %w", ended.number, result.RequeueAfter, err))
	case err != nil:
		says = "error: " + err.Error()
	case result.RequeueAfter > 0:
		says = "again after " + result.RequeueAfter.String()
	default:
		return
	}
	r.trace.add(row{pass: ended.number, what: "  the pass ends", answer: says})
}

func (r *run) panicked(p *Process, during *pass, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.dead { // one that is refused everything may be beside itself
		r.failLocked(fmt.Errorf("panic in pass %d: %v", during.number, value))
	}
}

// cause says why passes are asked for at this moment.
func (r *run) cause() (batch int, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch, r.causing
}

func (r *run) setCause(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch++
	r.causing = cause
}

// depose lets another replica lead until it is quiet, and reports whether the old leader may go on.
// The caller is in the old leader's pass and holds the lock.
func (r *run) depose(p *Process) bool {
	r.deposed = &deposed{process: p, resume: make(chan struct{})}
	resume := r.deposed.resume
	r.mu.Unlock()
	<-resume
	r.mu.Lock()
	return !p.dead
}

// end stops all that is left of the run.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		r.process.end()
	}
}

func (r *run) context() context.Context { return context.Background() }
