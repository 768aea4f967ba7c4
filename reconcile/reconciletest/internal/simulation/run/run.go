// Package run runs a scenario once.
//
//   - run.go holds a [Run], and its bubble of testing/synctest. scenario.go has the [Scenario], and deadline.go ends runs.
//   - guard.go watches a run from outside of its bubble, for one that hangs.
//   - driver.go has the loop that lets the operator work until it is quiet, as a list of transitions. leader.go finishes a pass,
//     and changes the leader in the middle of one. wait.go lets time pass.
//   - script.go does the user's actions, and phase.go checks the state after each. user.go is the client of the actions, held.go
//     has the finalizers of another controller on what the user deletes, and check.go calls the scenario's own checks.
//   - rest.go checks that the operator rests. unrest.go explains why it does not, missed.go which events it did not get,
//     hidden.go which objects its cache hides, and refused.go which refused creates it takes for a success.
//   - late.go has the runs without faults with which the others are compared: with a late start, and with a user who waits. twins.go has the
//     run in which two namespaces have the same objects.
package run

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Run is one run of a scenario, with some faults or without. It happens in a bubble of testing/synctest, in which
// nothing may wait for the real world.
//
// One goroutine drives the run. The operator's goroutines send requests at the same time, with the lock held.
type Run struct {
	*operator.Operator
	scenario *Scenario
	script   *script
	holder   *holder
	noOps    []string // writes of passes that had nothing to do
	refused  []result.RefusedCreate

	unsuccessful []error // see result.Result

	unfinished string // where the run was when the deadline ended it; "": it did not
}

func newRun(s *Scenario, server *memoryserver.Server, faults []plan.Fault, refs *result.References) *Run {
	o := world.Options{
		Scheme: s.Scheme, Server: server, Controllers: s.Controllers, Ignore: s.Ignore, Heartbeats: s.Heartbeats, Silent: s.Silent, References: refs,
		Faults: faults, Seed: newSeed(refs), Latency: s.Latency,
	}
	if s.External != nil {
		o.External = s.External()
	}
	r := &Run{Operator: operator.New(world.New(o), s.Start), scenario: s}
	bubble.OnConnection(r.EndByConnection)
	r.holder = &holder{Operator: r.Operator}
	r.script = &script{Run: r, moments: result.Moments{}}
	if refs != nil {
		r.script.clock = refs.Baseline.Moments
	}
	r.Actions = r.script
	s.guard.begin(r)
	return r
}

// newSeed returns the seed of a run. refs is nil for a run without faults.
func newSeed(refs *result.References) (made result.Seed) {
	if refs != nil {
		return refs.Baseline.Seed
	}
	_, _ = rand.Read(made[:]) // it never returns an error
	return made
}

// Run runs the scenario in a bubble of its own.
func (s *Scenario) Run(t *testing.T, faults []plan.Fault, refs *result.References) *result.Result {
	var r *Run
	var unusable error
	ending := bubble.Run(t, func(*testing.T) {
		server, err := s.newServer(refs)
		if err != nil {
			unusable = err
			return
		}
		r = newRun(s, server, faults, refs)
		r.script.perform()
		time.Sleep(time.Minute) // for goroutines that end at their next tick
	})
	switch {
	case ending.Hung != nil:
		return result.Failed(ending.Hung)
	case unusable != nil:
		return result.Failed(unusable)
	}
	left := r.leftOf(ending)
	plan.MarkRecreations(r.Plan.Points)
	return &result.Result{
		Faults: faults, Injected: len(r.Plan.Injected), Err: r.Failure(), Trace: r.Trace,
		Points: r.Plan.Points, Phases: r.script.phases, Operations: r.Counter.Operations, NoOps: r.noOps, Refused: r.refused, Moments: r.script.moments, Rights: r.Rights.All(), Past: r.Log.InThePast(),
		Silenced: r.Silenced, Seed: r.Seed, Server: r.Server, Unfinished: r.unfinished, Notes: r.notes(),
		Left: left, Unsuccessful: r.unsuccessful,
	}
}

// notes returns what a run without faults shows beside its failure, or though it does not fail.
func (r *Run) notes() []string {
	if r.References != nil {
		return nil
	}
	action := "start"
	if done := r.script.done; done > 0 {
		action = r.scenario.Actions[done-1].Name
	}
	notes := operator.VerdictOf(r.Operator).Notes(action)
	if r.RealTime != "" {
		notes = append(notes, "Without any fault, the operator works with a time of the real clock: "+r.RealTime+
			"\nThe clock of a run is virtual, and begins in the year 2000. Call time.Now in the pass, or in Start, not in a package variable or in the test")
	}
	return notes
}

// Interactive runs the scenario without faults, and then calls the test, which may do further actions by [Run.Do].
func Interactive(t *testing.T, s *Scenario, test func(t *testing.T, r *Run)) {
	t.Helper()
	ending := bubble.Run(t, func(t *testing.T) {
		server, err := s.newServer(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := newRun(s, server, nil, nil)
		defer time.Sleep(time.Minute) // for goroutines that end at their next tick
		defer r.End()
		r.script.begin()
		r.Do(t, s.Actions...)
		r.Log.Reset()
		test(t, r)
	})
	if err := ending.Err(); err != nil && !t.Failed() {
		t.Error(err)
	}
}

// Do does the user's actions, and lets the operator become quiet after each. It fails the test if the run fails.
func (r *Run) Do(t *testing.T, actions ...Action) {
	t.Helper()
	for _, action := range actions {
		r.script.do(action)
	}
	if err := r.Failure(); err != nil {
		t.Fatalf("%s\n\n%s", err, r.Trace)
	}
}
