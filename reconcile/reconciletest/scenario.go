package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scenario is an operator, and what happens to it. Scheme, Start and Actions are required.
type Scenario struct {
	// Scheme has the Go types that the operator and the actions use.
	Scheme *runtime.Scheme
	// CRDs are files or folders with custom resource definitions, as the generator writes them,
	// relative to the test's folder.
	CRDs []string

	// Objects are there before the operator starts.
	Objects []client.Object
	// Start makes the operator's process, as main does: with all that it remembers. It is called
	// again after each crash.
	Start func(p *Process) error
	// Actions are what a user does, one after another.
	Actions []Action

	// SimulatedControllers are what else runs in the cluster. Nil stands for [Deployments] alone. The garbage
	// collector always runs.
	SimulatedControllers []SimulatedController
	// External makes what the operator changes outside of the cluster, such as a fake database, anew
	// for each run. It outlives the processes of the run. See [External].
	External func() External

	// Finally checks the end of each run, with faults and without, where it is not enough that it
	// is the same as without faults.
	Finally func(w *Env) error
	// Always checks every moment at which something was written. It is costly.
	Always func(w *Env) error
	// Ignore removes from an object what may differ at the end of two runs: it is called with every
	// object that is compared. Names that the API server gives, UIDs, versions and times need no mention.
	Ignore func(obj *unstructured.Unstructured)

	// Horizon is how far into the future the operator's delays are followed after each action. Zero
	// means 15 minutes, which is more than the backoff of a failed request, and less if three delays of an object
	// in a row bring nothing new. An operator that waits for something by such delays needs one that is longer than
	// that; one that acts at regular times a shorter one than their distance, and the action [Wait].
	Horizon time.Duration
}

// External is something that the operator changes and that is not in the cluster.
type External interface {
	// State gives what there is, for the comparison of runs: any value that encoding/json takes.
	// Names that the API server gives, UIDs and times in it are treated as in objects.
	State() any
}

// SimulatedController is something else in the cluster, such as the controller of a built-in kind. It is called
// whenever the operator has nothing to do, takes one step, and writes nothing when there is none to take.
type SimulatedController func(ctx context.Context, c client.Client) error

// validate says what is missing.
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

const defaultHorizon = 15 * time.Minute

func (s *Scenario) horizon() time.Duration {
	if s.Horizon > 0 {
		return s.Horizon
	}
	return defaultHorizon
}

// rounds is how many delayed passes over an object may change nothing until it counts as quiet.
func (s *Scenario) rounds() int {
	if s.Horizon > 0 {
		return math.MaxInt
	}
	return 3
}

func (s *Scenario) others() []SimulatedController {
	if s.SimulatedControllers != nil {
		return s.SimulatedControllers
	}
	return []SimulatedController{Deployments}
}
