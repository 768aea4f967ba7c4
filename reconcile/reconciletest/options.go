package reconciletest

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// Options say which faults [Explore] tries for a [Scenario], and what counts as a failure. The zero value tries each single fault. A value
// that is not allowed is reported as a failure, and nothing is run.
type Options struct {
	// WithoutFaults does only the runs without faults, which takes seconds where all faults take minutes. It finds a scenario that does
	// not work, a missing watch, a pass that writes although there is nothing to do, and state that depends on when the operator
	// starts. With it, [AssertRole] says which rights no run without faults needs.
	WithoutFaults bool

	// Limit is the largest number of runs with one fault. If more are possible, a random sample is taken, with the same number of
	// faults of each kind, as far as there are enough. The report prints how many were possible, and the seed of the sample. 0: the
	// number is not limited; with go test -short the limit is 100.
	Limit int

	// Pairs is the largest number of runs with two faults. If more are possible, a random sample is taken. They are done only if all
	// single faults were survived. 0: none.
	Pairs int

	// Budget is how long the exploration may take in real time. When the budget is used up, no further run begins. Faults
	// are tried in a random order in which the kinds take turns, so the faults that were tried are a sample like the sample
	// of Limit. The report prints how many were left out. 0: the time is not limited.
	//
	// Without a budget the exploration ends shortly before the deadline of the test, which go test sets with -timeout: see
	// [Report.Unfinished].
	Budget time.Duration

	// Seed is the seed of the samples of Limit, Pairs and Budget. The same seed leads to the same order of runs, so also to the same
	// sample of the same size. The report prints it. 0 counts as 1.
	Seed uint64

	// Replay has the faults of one run, which is done after the run without faults, and whose trace the report has. The faults
	// have the form in which a report prints them after "replay it". A replay fails if one of the faults does not happen. The
	// environment variable RECONCILETEST_REPLAY does the same if Replay is empty.
	Replay string

	// SkipFaults are kinds of faults that are left out, such as those that an operator is known not to survive yet. The report names
	// them:
	//
	//	SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.TimeTravel},
	SkipFaults []FaultKind

	// SkipFindings are kinds of findings that are left out: a run goes on after one, and is not a failure because of it. The report
	// counts them. If the run without faults cannot go on, it is a failure in any case, since nothing else can be explored.
	SkipFindings []FindingKind

	// EachAction compares all runs after each action: they must have reached exactly what a run without faults has
	// reached after the same action. Without it, the operator may be further after an action that is not the last one: a
	// value is also right if the operator reaches it by itself, without faults, when the user waits after the action.
	// This is the default because a fault often makes the operator work for longer before the next action. While the user
	// only waits, a value is also right if a run without faults has it at another moment of the same waits: time may let
	// the operator work a little earlier or later. At the end of the waits, and of the scenario, everything must be done
	// in any case.
	EachAction bool
}

// replayVariable is the environment variable that does what Options.Replay does, without a change of the test.
const replayVariable = "RECONCILETEST_REPLAY"

// shortLimit is the Limit with -short.
const shortLimit = 100

// limit returns the largest number of runs with one fault.
func (o *Options) limit() int {
	switch {
	case o.Limit > 0:
		return o.Limit
	case testing.Short():
		return shortLimit
	}
	return math.MaxInt
}

func (o *Options) validate() error {
	switch {
	case o.Limit < 0:
		return fmt.Errorf("the option Limit is %d: give it 1 or more, or leave it out", o.Limit)
	case o.Pairs < 0:
		return fmt.Errorf("the option Pairs is %d: give it 1 or more, or leave it out", o.Pairs)
	case o.Budget < 0:
		return fmt.Errorf("the option Budget is %s: give it a duration above zero, or leave it out", o.Budget)
	}
	for i, kind := range o.SkipFaults {
		if kind == (FaultKind{}) {
			return fmt.Errorf("the option SkipFaults[%d] is empty: give it a field of Faults", i)
		}
	}
	for i, kind := range o.SkipFindings {
		if kind == (FindingKind{}) {
			return fmt.Errorf("the option SkipFindings[%d] is empty: give it a field of Findings", i)
		}
	}
	return nil
}

// simulated returns the options in the type of package simulation, which explores.
func (o *Options) simulated() simulation.Options {
	to := simulation.Options{
		Depth: 1, Limit: o.limit(), Pairs: o.Pairs, Seed: cmp.Or(o.Seed, 1), Replay: cmp.Or(o.Replay, os.Getenv(replayVariable)),
		NoFaults: o.WithoutFaults,
	}
	if o.Pairs > 0 {
		to.Depth = 2
	}
	for _, kind := range o.SkipFaults {
		to.Skip = append(to.Skip, kind.kind)
	}
	return to
}

// silent returns the kinds of findings that SkipFindings leaves out, in the type that package simulation uses.
func (o *Options) silent() (all []kinds.Finding) {
	for _, kind := range o.SkipFindings {
		all = append(all, kind.kind)
	}
	return all
}
