package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation"
)

// Scenario is an operator, and what happens to it. Scheme and Start are required, and Actions for [Explore].
type Scenario struct {
	// Scheme has the Go types that the operator and the actions use.
	Scheme *runtime.Scheme
	// CRDs are files or folders with custom resource definitions, relative to the test's folder.
	CRDs []string

	// Objects exist before the operator starts, with their status.
	Objects []client.Object
	// Start sets up the operator's process, as main does, with everything that the operator keeps in memory. It is called
	// again after each crash.
	Start func(p *Process) error
	// Actions are what a user does, one after another. Each comes when the operator is quiet.
	Actions []Action

	// SimulatedControllers are what else runs in the cluster. The default, if it is nil, is [Deployments]. The garbage
	// collector always runs.
	SimulatedControllers []SimulatedController
	// External returns what the operator changes outside of the cluster, such as a fake database. It is called once for
	// each run; what it returns outlives the processes of the run. See [External].
	External func() External

	// Finally checks the end of each run, with faults and without. It is for what must hold in addition to the package's own
	// rules.
	Finally func(env *Env) error
	// Always is called whenever something has changed. It is expensive.
	Always func(env *Env) error
	// Ignore removes from an object what may differ between two runs. It is called with a copy of every object that is
	// compared. Generated names, UIDs, resource versions and times are ignored anyway.
	Ignore func(obj *unstructured.Unstructured)

	// Horizon is how far into the future the operator's delays are followed after each action. If it is zero, they are
	// followed for 15 minutes, which is longer than the backoff of a failed request, and of each object only until three
	// delayed passes in a row have changed nothing. An operator that polls for something needs a horizon that is longer than
	// its wait. An operator that acts at regular times needs a horizon that is shorter than its period, and the action
	// [Wait].
	Horizon time.Duration
}

// External is something that the operator changes and that is not in the cluster.
type External interface {
	// State returns what exists there, for the comparison of runs: any value that encoding/json can encode. Generated
	// names, UIDs and times in it are treated as in objects.
	State() any
}

// SimulatedController is something else in the cluster, such as the controller of a built-in kind. It is called
// whenever the operator has nothing to do, takes one step, and writes nothing if there is none to take.
type SimulatedController func(ctx context.Context, c client.Client) error

// validate returns an error that says what is missing.
func (s *Scenario) validate() error {
	switch {
	case s.Scheme == nil:
		return errors.New("the scenario has no Scheme: set it to the one that the operator's manager has")
	case s.Start == nil:
		return errors.New("the scenario has no Start: set it to what the operator's main does")
	}
	for i, obj := range s.Objects {
		if isNil(obj) {
			return fmt.Errorf("the scenario's Objects[%d] is nil: give it an object", i)
		}
	}
	for i := range s.Actions {
		if err := s.Actions[i].validate(); err != nil {
			return fmt.Errorf("the scenario's Actions[%d]: %w", i, err)
		}
	}
	return nil
}

// simulated returns the scenario in the engine's types.
func (s *Scenario) simulated() *simulation.Scenario {
	to := &simulation.Scenario{
		Scheme: s.Scheme, CRDs: s.CRDs, Objects: s.Objects, Ignore: s.Ignore, Horizon: s.Horizon,
		Start: func(p *simulation.Process) error { return s.Start(&Process{p}) },
	}
	for i := range s.Actions {
		to.Actions = append(to.Actions, s.Actions[i].simulated())
	}
	controllers := s.SimulatedControllers
	if controllers == nil {
		controllers = []SimulatedController{Deployments}
	}
	for _, c := range controllers {
		to.Controllers = append(to.Controllers, c)
	}
	if s.External != nil {
		to.External = func() simulation.External { return s.External() }
	}
	if s.Finally != nil {
		to.Finally = func(r *simulation.Run) error { return s.Finally(newEnv(r)) }
	}
	if s.Always != nil {
		to.Always = func(r *simulation.Run) error { return s.Always(newEnv(r)) }
	}
	return to
}
