package reconciletest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Env is the environment of a run, for the test of [Run] and for [Scenario.Finally] and [Scenario.Always].
type Env struct {
	client.Client             // the user's client of the API server: its requests are not in the log
	External      External    // what [Scenario.External] returned for the run, nil if the scenario has none
	RequestLog    *RequestLog // holds the operator's requests

	world *world.World
	t     *testing.T // nil in a check such as [Scenario.Finally], and so is run
	run   *run.Run
}

func newEnv(w *world.World) *Env {
	return &Env{Client: w.User, External: w.External, RequestLog: &RequestLog{w.Log}, world: w}
}

// Run is for ordinary tests. It runs the scenario without faults. Before it calls test, it has created the scenario's
// Objects, called Start, and done all of the scenario's Actions, each with all passes that it triggers until the operator is
// quiet. A scenario that is explored elsewhere is thus played to its end: set Actions to nil, or to the actions that the
// test builds on. The request log is empty then. The test does further actions by [Env.Do]. Run fails the test if the run
// breaks a rule of the package. It calls [Scenario.Always] as [Explore] does, but not [Scenario.Finally].
//
// The test runs in a bubble of testing/synctest, in which time.Now is virtual. It must use the t that it gets.
func Run(t *testing.T, s Scenario, test func(t *testing.T, env *Env)) {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	run.Interactive(t, s.simulated(), func(t *testing.T, r *run.Run) {
		env := newEnv(r.World)
		env.t, env.run = t, r
		test(t, env)
	})
}

// Do does the user's actions, and lets the operator become quiet after each. It fails the test at once if an action fails,
// or if the operator does not become quiet or breaks another rule of the package. It may be called only in the test of
// [Run].
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
func (e *Env) Trace() string { return e.world.Trace.String() }
