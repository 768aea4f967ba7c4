// Package run runs a scenario once.
//
//   - run.go makes the parts of a [Run] in a bubble of testing/synctest. scenario.go has the [Scenario], and deadline.go says when runs end.
//   - guard.go has what a goroutine outside of the bubble sees of a run. hung.go has that goroutine, which ends a run that hangs.
//   - script.go does the user's actions. actions.go says which is next, clock.go when it begins, and user.go has the user's client. held.go has
//     the finalizers of another controller on objects that the user deletes.
//   - driver.go lets the operator work until it is quiet, as a list of transitions. leader.go finishes a pass, and changes the leader in the
//     middle of one. wait.go lets time pass, and notquiet.go explains why the operator does not become quiet.
//   - phase.go checks the state after each action. judge.go compares it with the runs without faults, and check.go calls the scenario's own
//     checks.
//   - rest.go checks that one more pass of every object changes nothing. probes.go has these passes. unrest.go explains why they change
//     something, missed.go which events the operator did not get, changes.go what it changed, hidden.go which objects its cache hides, and
//     refused.go which refused creations it treats as a success.
//   - late.go has the runs without faults with which the others are compared: with a late start, with a user who waits, and with the same
//     objects in a second namespace, which twins.go creates.
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
	World    *world.World
	operator *operator.Operator
	script   *script
}

func newRun(s *Scenario, server *memoryserver.Server, faults []plan.Fault, refs *result.References) *Run {
	o := world.Options{
		Scheme: s.Scheme, Server: server, Controllers: s.Controllers, Ignore: s.Ignore, Heartbeats: s.Heartbeats, Silent: s.Silent, References: refs,
		Faults: faults, Seed: newSeed(refs), Latency: s.Latency,
	}
	if s.External != nil {
		o.External = s.External()
	}
	w := world.New(o)
	r := &Run{World: w, operator: operator.New(w, s.Start)}
	bubble.OnConnection(r.operator.EndByConnection)
	r.script = newScript(s, w, r.operator)
	s.guard.begin(w)
	return r
}

// newSeed returns the seed of a run. In a run without faults refs is nil.
func newSeed(refs *result.References) (made result.Seed) {
	if refs != nil {
		return refs.Baseline.Seed
	}
	_, _ = rand.Read(made[:]) // it never returns an error
	return made
}

// Run runs the scenario in a synctest bubble of its own.
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
		time.Sleep(time.Minute) // goroutines may end at their next tick
	})
	switch {
	case ending.Hung != nil:
		return result.Failed(ending.Hung)
	case unusable != nil:
		return result.Failed(unusable)
	}
	left := leftOf(ending, r.World, r.operator.Died)
	plan.MarkRecreations(r.World.Plan.Points)
	return &result.Result{
		Faults: faults, Injected: len(r.World.Plan.Injected), Err: r.World.Failures.First(), Trace: r.World.Trace,
		Points: r.World.Plan.Points, Phases: r.script.phases.ended, Operations: r.World.Counter.Operations, NoOps: r.script.phases.notes.noOps, Refused: r.script.phases.notes.refused, Moments: r.script.clock.moments, Rights: r.World.Rights.All(), Past: r.World.Log.InThePast(),
		Silenced: r.World.Failures.Silenced, Seed: r.World.Seed, Server: r.World.Server, Unfinished: r.script.driver.unfinished, Notes: r.notes(),
		Left: left, Unsuccessful: r.script.unsuccessful,
	}
}

// notes returns lines about a run without faults that a report shows whether the run failed or not.
func (r *Run) notes() []string {
	if r.World.References != nil {
		return nil
	}
	notes := operator.VerdictOf(r.operator).Notes(r.script.actions.last())
	if r.World.RealTime != "" {
		notes = append(notes, "Without any fault, the operator works with a time of the real clock: "+r.World.RealTime+
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
		defer time.Sleep(time.Minute) // goroutines may end at their next tick
		defer r.operator.End()
		r.script.begin()
		r.Do(t, s.Actions...)
		r.World.Log.Reset()
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
	if err := r.World.Failures.First(); err != nil {
		t.Fatalf("%s\n\n%s", err, r.World.Trace)
	}
}
