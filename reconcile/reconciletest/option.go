package reconciletest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Option changes how [Explore] explores a scenario. A value that is not allowed is reported as a failure, and nothing is
// run.
type Option func(*settings)

type settings struct {
	depth  int
	limit  int           // the largest number of runs with one fault
	pairs  int           // the largest number of runs with two faults
	budget time.Duration // the real time that the exploration may take
	seed   uint64
	replay string
	skip   []FaultKind
	silent []FindingKind
	strict bool

	withoutFaults bool
}

const (
	defaultPairs = 1000
	defaultSeed  = 1

	// With -short.
	shortLimit = 100
	shortPairs = 20
)

// replayVariable is the environment variable that does what [Replay] does, without a change of the test.
const replayVariable = "RECONCILETEST_REPLAY"

func newSettings(options []Option) *settings {
	s := &settings{depth: 1, limit: math.MaxInt, pairs: defaultPairs, budget: math.MaxInt64, seed: defaultSeed, replay: os.Getenv(replayVariable)}
	if testing.Short() {
		s.limit, s.pairs = shortLimit, shortPairs
	}
	for _, o := range options {
		o(s)
	}
	return s
}

// hasBudget reports whether the option [Budget] is set.
func (s *settings) hasBudget() bool { return s.budget != math.MaxInt64 }

func (s *settings) validate() error {
	switch {
	case s.depth < 1 || s.depth > 2:
		return fmt.Errorf("Depth(%d): give it 1 or 2", s.depth)
	case s.limit < 1:
		return fmt.Errorf("Limit(%d): give it 1 or more", s.limit)
	case s.pairs < 1:
		return fmt.Errorf("LimitPairs(%d): give it 1 or more", s.pairs)
	case s.budget <= 0:
		return fmt.Errorf("Budget(%s): give it a duration above zero", s.budget)
	}
	for _, kind := range s.skip {
		if !slices.Contains(kinds.Faults(), kind) {
			return fmt.Errorf("SkipFaults(%q): there is no such kind of fault: give it some of %q", kind, kinds.Faults())
		}
	}
	for _, kind := range s.silent {
		if !slices.Contains(kinds.Findings(), kind) {
			return fmt.Errorf("SkipFindings(%q): there is no such kind of finding: give it some of %q", kind, kinds.Findings())
		}
	}
	return nil
}

// simulated returns the settings in the engine's type.
func (s *settings) simulated() simulation.Options {
	return simulation.Options{
		Depth: s.depth, Limit: s.limit, Pairs: s.pairs, Skip: s.skip, Seed: s.seed, Replay: s.replay, NoFaults: s.withoutFaults,
	}
}

// Depth sets how many faults happen in one run at most: 1, the default, or 2. Runs with two faults are done only if all
// single faults were survived.
func Depth(n int) Option { return func(s *settings) { s.depth = n } }

// Limit sets the largest number of runs with one fault, 1 or more. If more are possible, a random sample is taken, with
// the same number of faults of each kind, as far as there are enough. The report prints how many were possible, and the
// seed of the sample. By default the number is not limited; with go test -short the limit is 100.
func Limit(n int) Option { return func(s *settings) { s.limit = n } }

// LimitPairs sets the largest number of runs with two faults, 1 or more. If more are possible, a random sample is taken. The
// default is 1000; with go test -short it is 20.
func LimitPairs(n int) Option { return func(s *settings) { s.pairs = n } }

// Budget sets how long the exploration may take in real time. When the budget is used up, no further run begins. Faults
// are tried in a random order in which the kinds take turns, so the faults that were tried are a sample like the sample
// of [Limit]. The report prints how many were left out. By default the time is not limited.
//
// Without a budget the exploration ends shortly before the deadline of the test, which go test sets with -timeout: see
// [Report.Unfinished].
func Budget(d time.Duration) Option { return func(s *settings) { s.budget = d } }

// Seed sets the seed of the samples of [Limit], [LimitPairs] and [Budget]. The same seed leads to the same order of runs, so
// also to the same sample of the same size. The report prints it. The default is 1.
func Seed(n uint64) Option { return func(s *settings) { s.seed = n } }

// Replay does one run with the given faults, after the run without faults, and adds its trace to the report. The faults
// have the form in which a report prints them after "replay it". A replay fails if one of the faults does not happen. The
// environment variable RECONCILETEST_REPLAY does the same; Replay takes precedence over it.
func Replay(faults string) Option { return func(s *settings) { s.replay = faults } }

// WithoutFaults does only the runs without faults, which takes seconds where all faults take minutes. It finds a scenario that does
// not work, a missing watch, a pass that writes although there is nothing to do, and state that depends on when the operator
// starts. With it, [AssertRole] says which rights no run without faults needs.
func WithoutFaults() Option { return func(s *settings) { s.withoutFaults = true } }

// SkipFaults leaves out kinds of faults, such as those that an operator is known not to survive yet. The report names them:
//
//	reconciletest.SkipFaults("time travel to before", "stale for long after")
func SkipFaults(all ...FaultKind) Option {
	return func(s *settings) { s.skip = append(s.skip, all...) }
}

// FindingKind is a kind of finding: "does not survive", "does not succeed", "does not come to rest", "leaks a secret", "creates a duplicate", "changes what is not
// its own", "leaves something outside", "leaves an entry behind", "depends on timing" or "breaks a convention".
type FindingKind = kinds.Finding

// SkipFindings leaves out findings of some kinds: a run goes on after one, and is not a failure because of it. The report counts
// them. If the run without faults cannot go on, it is a failure in any case, since nothing else can be explored.
func SkipFindings(all ...FindingKind) Option {
	return func(s *settings) { s.silent = append(s.silent, all...) }
}

// EachAction holds each action to its own result: what a run without faults reaches after an action, the others must
// reach after the same one, and nothing more. By default, the operator may be further after an action that is not the
// last one: a value is right if the operator reaches it by itself, without faults, when the user waits after the
// action. A fault often makes the operator work for longer before the next action. While the user only waits, a value
// is also right if a run without faults has it at another moment of the same waits: time may let the operator work a
// little earlier or later. At the end of the waits, and of the scenario, everything must be done in any case.
func EachAction() Option { return func(s *settings) { s.strict = true } }
