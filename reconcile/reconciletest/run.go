package reconciletest

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// run is one life of the scenario, with some faults or without. It happens inside a bubble of
// testing/synctest, in which it may call nothing that waits for the real world.
type run struct {
	scenario *Scenario
	server   *memoryserver.Server
	user     client.WithWatch
	outside  External
	baseline *result // the run without faults; nil if this is it
	faults   []Fault

	mu        sync.Mutex
	process   *Process // the leader
	processes int
	deposed   *deposed
	pass      int
	batch     int
	causing   string
	ledger    *RequestLog
	trace     *trace
	nth       map[string]int // requests and changes of a name so far
	struck    []Fault
	made      map[madeKey]bool
	touched   []touched
	writes    map[madeKey]int // changes by the operator
	seen      int64           // the revision up to which present is told
	present   map[madeKey]client.Object
	changes   []memoryserver.Change // up to seen
	effects   int                   // that changed something outside
	points    []point
	failures  []error
	phases    []phase
	clean     bool               // no process has died
	probing   bool               // whether all is quiet
	away      bool               // it starts again only after the next action
	journey   *past              // to which the process travels when all is quiet
	past      *past              // that the next process sees
	returned  bool               // a process has seen the past
	undone    map[types.UID]bool // what was made since then, which it may delete when it sees the present
	acted     int                // the user's actions so far
	deleted   map[madeKey]int    // by the operator, how often
	rollouts  map[madeKey]int    // pod templates that the operator changed, and Jobs that it ran again
	ended     map[over]outcome   // how the last pass over each object ended
}

// madeKey names an object.
type madeKey struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

func newRun(s *Scenario, server *memoryserver.Server, faults []Fault, baseline *result) *run {
	r := &run{
		scenario: s, server: server, user: server.Client(), baseline: baseline, faults: faults,
		ledger: &RequestLog{}, trace: &trace{}, nth: map[string]int{}, made: map[madeKey]bool{}, present: map[madeKey]client.Object{}, writes: map[madeKey]int{},
		clean: true, deleted: map[madeKey]int{}, undone: map[types.UID]bool{}, rollouts: map[madeKey]int{}, ended: map[over]outcome{},
	}
	if s.External != nil {
		r.outside = s.External()
	}
	return r
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

// end stops all that is left of the run.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		r.process.end()
	}
}

func (r *run) context() context.Context { return context.Background() }
