package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Run is one run of a scenario, with some faults or without. It happens in a bubble of testing/synctest, in which
// nothing may wait for the real world.
//
// One goroutine drives the run. The operator's goroutines send requests at the same time, with the lock held.
type Run struct {
	scenario   *Scenario
	server     *memoryserver.Server
	user       client.WithWatch
	external   External    // nil: the scenario has none
	clock      moments     // the moments of the run without faults, which this one follows; nil: none
	references *references // nil: this is a run without faults
	seed       seed
	lingers    bool // the run lingers after each action; see linger
	log        *RequestLog
	trace      *trace
	rights     *rights

	mu          sync.Mutex // guards what follows
	plan        plan
	history     history
	operations  operations
	otherWrites []otherWrite // what the other writer wrote
	held        []heldObject // what the finalizer of another controller holds
	processes   processes
	timeTravel  timeTravel
	passes      passes
	script      script
	probing     bool // checkRest runs
	failures    []error
	unfinished  string                 // where the run was when the deadline ended it; "": it did not
	silenced    map[kinds.Finding]bool // kinds of findings that were left out
	noOps       []string               // writes of passes that had nothing to do
	random      *rand.ChaCha8          // the random numbers that follow from the seed

	externalSteps int // how often what is outside of the cluster has changed by itself
}

// objectID identifies an object.
type objectID struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

// String returns kind, namespace and name.
func (o objectID) String() string { return o.kind.Kind + " " + nameOf(o.name) }

func newRun(s *Scenario, server *memoryserver.Server, faults []Fault, refs *references) *Run {
	r := &Run{
		scenario: s, server: server, user: server.Client(), references: refs, log: &RequestLog{}, trace: &trace{},
		plan:       plan{faults: faults, count: map[string]int{}},
		history:    history{present: map[objectID]client.Object{}},
		operations: newOperations(),
		timeTravel: timeTravel{created: map[types.UID]bool{}},
		passes:     newPasses(),
		rights:     newRights(server.Client().RESTMapper()),
		script:     script{moments: moments{}},
		silenced:   map[kinds.Finding]bool{},
	}
	if refs != nil {
		r.clock = refs.baseline.moments
	}
	r.seed = newSeed(refs)
	r.random = rand.NewChaCha8(r.seed)
	if s.External != nil {
		r.external = s.External()
	}
	return r
}

// result is the result of a run.
type result struct {
	faults     []Fault
	injected   int // how many of the faults were injected
	err        error
	trace      *trace
	points     []point
	phases     []phase
	operations operations
	rights     map[Right]string
	noOps      []string // writes of passes that had nothing to do
	silenced   map[kinds.Finding]bool
	past       []string // writes by processes whose cache was behind, since they began with an old one
	moments    moments
	seed       seed
	server     *memoryserver.Server
	unfinished string // where the run was when the deadline ended it; "": it did not
}

// failed returns the result of a run that could not be started.
func failed(err error) *result {
	return &result{err: err, trace: &trace{}, silenced: map[kinds.Finding]bool{}}
}

// run runs the scenario in a bubble of its own.
func (s *Scenario) run(t *testing.T, faults []Fault, refs *references) *result {
	var r *Run
	var unusable error
	left := inBubble(t, func(*testing.T) {
		server, err := s.newServer(refs)
		if err != nil {
			unusable = err
			return
		}
		r = newRun(s, server, faults, refs)
		r.runActions()
		time.Sleep(time.Minute) // for goroutines that end at their next tick
	})
	if unusable != nil {
		return failed(unusable)
	}
	if left != "" && !r.processes.died && r.failure() == nil {
		r.fail(goroutineLeftError(left))
	}
	return &result{
		faults: faults, injected: len(r.plan.injected), err: r.failure(), trace: r.trace,
		points: r.plan.points, phases: r.script.phases, operations: r.operations, noOps: r.noOps, moments: r.script.moments, rights: r.rights.all(), past: r.log.inThePast(),
		silenced: r.silenced, seed: r.seed, server: r.server, unfinished: r.unfinished,
	}
}

// Interactive runs the scenario without faults, and then calls the test, which may do further actions by [Run.Do].
func Interactive(t *testing.T, s *Scenario, test func(t *testing.T, r *Run)) {
	t.Helper()
	left := inBubble(t, func(t *testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := newRun(s, server, nil, nil)
		defer time.Sleep(time.Minute) // for goroutines that end at their next tick
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

// Do does the user's actions, and lets the operator become quiet after each. It fails the test if the run fails.
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

// External returns what the scenario's External returned for this run, nil if it has none.
func (r *Run) External() External { return r.external }

// Log returns the log of the operator's requests.
func (r *Run) Log() *RequestLog { return r.log }

// Trace returns what has happened so far, as a table.
func (r *Run) Trace() string { return r.trace.String() }

// fail notes an error of the operator or of the scenario. The first one ends the run, unless it is a finding of a kind that is
// left out.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(err)
}

func (r *Run) failLocked(err error) {
	if f, ok := errors.AsType[finding](err); ok && r.silence(f.kind) {
		return
	}
	r.failures = append(r.failures, err)
}

// silence notes a finding, and reports true, if its kind is left out. Then the run goes on.
func (r *Run) silence(kind kinds.Finding) bool {
	silent := slices.Contains(r.scenario.Silent, kind)
	if silent {
		r.silenced[kind] = true
	}
	return silent
}

// abort notes an error after which the run cannot go on, whether or not findings of its kind are left out.
func (r *Run) abort(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, err)
}

// failure returns the first error, nil if there is none.
func (r *Run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) == 0 {
		return nil
	}
	return r.failures[0]
}

// version is compared with a later one to find out whether something has changed.
type version struct {
	revision int64 // the server's revision
	effects  int   // how many effects have changed something outside of the cluster
	steps    int   // how often what is outside of the cluster has changed by itself
}

func (r *Run) version() version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return version{r.server.Revision(), r.operations.effects, r.externalSteps}
}

// end ends the leading process.
func (r *Run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes.leader != nil {
		r.processes.leader.end()
	}
}

func (r *Run) context() context.Context { return context.Background() }

// inBubble calls f in a bubble of testing/synctest. If goroutines that wait for ever are left in the bubble, it returns
// the bubble's name, else "".
func inBubble(t *testing.T, f func(t *testing.T)) (left string) {
	var name string
	defer func() {
		if r := recover(); r != nil {
			if !strings.Contains(fmt.Sprint(r), "deadlock") {
				panic(r)
			}
			left = name
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		name = bubbleName()
		f(t)
	})
	return ""
}

// bubbleName returns the text that marks the bubble's goroutines in stack traces.
func bubbleName() string {
	var header [100]byte
	text := string(header[:runtime.Stack(header[:], false)])
	_, after, _ := strings.Cut(text, "synctest bubble ")
	number, _, _ := strings.Cut(after, "]")
	return "synctest bubble " + number + "]"
}

func goroutineLeftError(bubble string) error {
	return fmt.Errorf("a goroutine is left when the process has ended: %s", goroutinesOf(bubble))
}

// goroutinesOf describes the bubble's goroutines: which function started each, and what it waits for.
func goroutinesOf(bubble string) string {
	stacks := make([]byte, 1<<20)
	var all []string
	count := map[string]int{}
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble) {
			continue
		}
		_, waits, _ := strings.Cut(header, "[")
		waits, _, _ = strings.Cut(waits, " (durable)")
		_, by, _ := strings.Cut(frames, "created by ")
		by, at, _ := strings.Cut(by, "\n\t")
		by, _, _ = strings.Cut(by, " in goroutine")
		at, _, _ = strings.Cut(at, " +")
		one := fmt.Sprintf("%s started it at %s, and it waits: %s", by, at[strings.LastIndex(at, "/")+1:], waits)
		if count[one]++; count[one] == 1 {
			all = append(all, one)
		}
	}
	for i, one := range all {
		if n := count[one]; n > 1 {
			all[i] = fmt.Sprintf("%s (%d of them)", one, n)
		}
	}
	return strings.Join(all, "; ")
}
