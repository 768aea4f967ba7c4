package run

import (
	"context"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/verdict"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Scenario is an operator, and what happens to it. Scheme and Start are required. Type Scenario of package reconciletest
// documents the fields.
type Scenario struct {
	Scheme      *runtime.Scheme
	CRDs        []string                                           // files or directories
	Webhooks    []string                                           // files or directories
	Objects     []client.Object                                    // exist before the operator starts
	Start       func(p *operator.Process) error                    // is called once for each process
	Actions     []Action                                           // what the user does, one after another
	Controllers []func(ctx context.Context, c client.Client) error // the steps of the simulated controllers
	External    func() world.External                              // is called once for each run; may be nil
	Finally     func(w *world.World) error                         // is called at the end of each run; may be nil
	Always      func(w *world.World) error                         // is called after changes, between passes; may be nil
	Ignore      func(obj *unstructured.Unstructured)               // removes what may differ between runs; may be nil
	Heartbeats  func(obj *unstructured.Unstructured)               // removes fields whose changes do not count; may be nil
	Silent      []kinds.Finding                                    // findings of these kinds do not end a run
	Unready     []verdict.Unready                                  // states without success that the scenario intends
	Strict      bool                                               // after each action, exactly the state of a run without faults is required; see result.References
	Horizon     time.Duration                                      // how long delayed passes are waited for after a change; 0: defaultHorizon, and at most 3 attempts
	Latency     time.Duration                                      // the virtual time that each request of the operator takes

	Deadline Deadline // the deadline of the exploration
	guard    *guarded // the guard of the run; nil: the run has none
}

// Action is one thing that the user does. Exactly one of Do, DoExternal and Wait is set.
type Action struct {
	Name       string
	Do         func(ctx context.Context, c client.Client) error
	DoExternal func(world.External) error
	Wait       time.Duration
	Then       func(w *world.World) error // the check after the action; may be nil
	Spares     bool                       // no fault is tried until the next action, except faults that belong to the next action
}

// Asks reports whether the scenario checks anything, in addition to the comparison with runs without faults.
func (s *Scenario) Asks() bool {
	return s.Finally != nil || s.Always != nil || slices.ContainsFunc(s.Actions, func(a Action) bool { return a.Then != nil })
}

// defaultHorizon is longer than the longest backoff of controller-runtime, 1000 seconds: the next retry of a failing pass is always waited for.
const defaultHorizon = 17 * time.Minute

func (s *Scenario) horizon() time.Duration {
	if s.Horizon > 0 {
		return s.Horizon
	}
	return defaultHorizon
}

// enoughAttempts returns after how many delayed passes in a row that change nothing an object is no longer waited for. If the scenario sets
// a horizon, it returns a number that is never reached.
func (s *Scenario) enoughAttempts() int {
	if s.Horizon > 0 {
		return math.MaxInt
	}
	return 3
}

// newServer returns a server with the scenario's kinds. If refs is not nil, the server reuses results of the run without faults.
func (s *Scenario) newServer(refs *result.References) (*memoryserver.Server, error) {
	var options []memoryserver.Option
	if len(s.CRDs) > 0 {
		options = append(options, memoryserver.CRDs(s.CRDs...))
	}
	if len(s.Webhooks) > 0 {
		options = append(options, memoryserver.Webhooks(s.Webhooks...))
	}
	if refs != nil {
		options = append(options, memoryserver.Following(refs.Baseline.Server))
	}
	return memoryserver.New(s.Scheme, options...)
}
