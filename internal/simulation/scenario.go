package simulation

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// Scenario is an operator, and what happens to it. Scheme and Start are required.
type Scenario struct {
	Scheme      *runtime.Scheme
	CRDs        []string                                           // files or folders
	Objects     []client.Object                                    // that exist before the operator starts
	Start       func(p *Process) error                             // is called for each process
	Actions     []Action                                           // of the user
	Controllers []func(ctx context.Context, c client.Client) error // of everything else in the cluster
	External    func() External                                    // is called for each run; nil: there is nothing
	Finally     func(r *Run) error                                 // checks the end of each run; nil: it is not checked
	Always      func(r *Run) error                                 // checks each moment at which something changed; nil: they are not checked
	Ignore      func(obj *unstructured.Unstructured)               // removes what may differ between runs; nil: nothing
	Horizon     time.Duration                                      // how far delays are followed; 0: defaultHorizon
}

// Action is something that the user does. Exactly one of Do, DoExternal and Wait is set.
type Action struct {
	Name       string
	Do         func(ctx context.Context, c client.Client) error
	DoExternal func(External) error
	Wait       time.Duration
}

// External is what is outside of the cluster.
type External interface{ State() any }

// defaultHorizon is more than the backoff of a request that failed.
const defaultHorizon = 15 * time.Minute

func (s *Scenario) horizon() time.Duration {
	if s.Horizon > 0 {
		return s.Horizon
	}
	return defaultHorizon
}

// enoughAttempts is how many delayed passes of an object may change nothing until the operator counts as quiet. A
// scenario with a horizon of its own follows every delay within it.
func (s *Scenario) enoughAttempts() int {
	if s.Horizon > 0 {
		return math.MaxInt
	}
	return 3
}

func (s *Scenario) newServer() (*memoryserver.Server, error) {
	if len(s.CRDs) == 0 {
		return memoryserver.New(s.Scheme)
	}
	return memoryserver.New(s.Scheme, memoryserver.CRDs(s.CRDs...))
}
