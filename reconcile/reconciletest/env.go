package reconciletest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation"
)

// Env is a run as a test or a check sees it.
type Env struct {
	client.Client             // of a user: its requests are not in the log
	External      External    // what [Scenario.External] returned for the run, nil if the scenario has none
	RequestLog    *RequestLog // of the operator's requests

	t   *testing.T
	run *simulation.Run
}

func newEnv(r *simulation.Run) *Env {
	return &Env{Client: r.User(), External: r.External(), RequestLog: &RequestLog{r.Log()}, run: r}
}

// Run is for ordinary tests. It runs the scenario without faults. It calls test when the operator is quiet after the last of
// the scenario's actions, with an empty request log. The test may do further actions by [Env.Do].
//
// The test runs in a bubble of testing/synctest: time.Now is virtual in it, and it must use the t that it is given.
func Run(t *testing.T, s Scenario, test func(t *testing.T, env *Env)) {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	simulation.Interactive(t, s.simulated(), func(t *testing.T, r *simulation.Run) {
		env := newEnv(r)
		env.t = t
		test(t, env)
	})
}

// Do does what a user does, and lets the operator become quiet after each action. It fails the test if the operator
// does not become quiet, or breaks another rule of the package. It is for [Run] only.
func (e *Env) Do(actions ...Action) {
	e.t.Helper()
	for i := range actions {
		if err := actions[i].validate(); err != nil {
			e.t.Fatal(err)
		}
		e.run.Do(e.t, actions[i].simulated())
	}
}

// Trace returns what has happened so far, as a table.
func (e *Env) Trace() string { return e.run.Trace() }
