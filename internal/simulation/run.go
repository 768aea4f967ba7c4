package simulation

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// Run is one run of a scenario, with some faults or without. It happens in a bubble of testing/synctest, in which it
// may call nothing that waits for the real world.
//
// One goroutine drives the run. The operator's goroutines send requests meanwhile, under the lock.
type Run struct {
	scenario *Scenario
	server   *memoryserver.Server
	user     client.WithWatch
	external External // nil: there is nothing
	baseline *result  // the run without faults; nil if this is it
	log      *RequestLog
	trace    *trace

	mu         sync.Mutex // guards what follows
	plan       plan
	history    history
	operations operations
	otherWrites    []otherWrite // by the other writer
	processes  processes
	timeTravel     timeTravel
	passes     passes
	script     script
	probing    bool // it is checked whether the operator rests
	failures   []error
}

// objectID names an object.
type objectID struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

// String returns kind, namespace and name.
func (o objectID) String() string { return o.kind.Kind + " " + nameOf(o.name) }

func newRun(s *Scenario, server *memoryserver.Server, faults []Fault, baseline *result) *Run {
	r := &Run{
		scenario: s, server: server, user: server.Client(), baseline: baseline, log: &RequestLog{}, trace: &trace{},
		plan:       plan{faults: faults, count: map[string]int{}},
		history:    history{present: map[objectID]client.Object{}},
		operations: newOperations(),
		timeTravel:     timeTravel{created: map[types.UID]bool{}},
		passes:     newPasses(),
	}
	if s.External != nil {
		r.external = s.External()
	}
	return r
}

// result is what is left of a run.
type result struct {
	faults     []Fault
	injected     int // how many of the faults struck
	err        error
	trace      *trace
	points     []point
	phases     []phase
	operations operations
}

// failed is the result of what could not be run.
func failed(err error) *result { return &result{err: err, trace: &trace{}} }

// run runs the scenario in a bubble of its own.
func (s *Scenario) run(t *testing.T, faults []Fault, baseline *result) *result {
	var r *Run
	var unusable error
	left := inBubble(t, func(*testing.T) {
		server, err := s.newServer()
		if err != nil {
			unusable = err
			return
		}
		r = newRun(s, server, faults, baseline)
		r.runActions()
		time.Sleep(time.Minute) // for what ends at its next tick
	})
	if unusable != nil {
		return failed(unusable)
	}
	if left != "" && !r.processes.died && r.failure() == nil {
		r.fail(goroutineLeftError(left))
	}
	return &result{
		faults: faults, injected: len(r.plan.injected), err: r.failure(), trace: r.trace,
		points: r.plan.points, phases: r.script.phases, operations: r.operations,
	}
}

// Interactive runs the scenario without faults, and then calls the test, which may do further actions by [Run.Do].
func Interactive(t *testing.T, s *Scenario, test func(t *testing.T, r *Run)) {
	t.Helper()
	left := inBubble(t, func(t *testing.T) {
		server, err := s.newServer()
		if err != nil {
			t.Fatal(err)
		}
		r := newRun(s, server, nil, nil)
		defer time.Sleep(time.Minute) // for what ends at its next tick
		defer r.end()
		r.begin()
		r.Do(t, s.Actions...)
		r.log.Reset()
		test(t, r)
	})
	if left != "" && !t.Failed() {
		t.Error(goroutineLeftError(left))
	}
}

// Do does what a user does, and lets the operator become quiet after each action. It fails the test if the run fails.
func (r *Run) Do(t *testing.T, actions ...Action) {
	t.Helper()
	for _, action := range actions {
		r.do(action)
	}
	if err := r.failure(); err != nil {
		t.Fatalf("%s\n\n%s", err, r.trace)
	}
}

// User returns the user's client. Its requests are not recorded.
func (r *Run) User() client.Client { return r.user }

// External returns what is outside of the cluster, nil if there is nothing.
func (r *Run) External() External { return r.external }

// Log returns the log of the operator's requests.
func (r *Run) Log() *RequestLog { return r.log }

// Trace returns what has happened so far, as a table.
func (r *Run) Trace() string { return r.trace.String() }

// fail notes an error of the operator or of the scenario. The first one ends the run.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

func (r *Run) failLocked(err error) { r.failures = append(r.failures, err) }

// failure returns the first error, nil if there is none.
func (r *Run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) == 0 {
		return nil
	}
	return r.failures[0]
}

// version differs from an earlier one if something has changed since.
type version struct {
	revision int64 // of the server
	effects  int
}

func (r *Run) version() version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return version{r.server.Revision(), r.operations.effects}
}

// end ends the process.
func (r *Run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes.leader != nil {
		r.processes.leader.end()
	}
}

func (r *Run) context() context.Context { return context.Background() }
