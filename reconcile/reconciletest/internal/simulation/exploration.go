package simulation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// Exploration is the result of [Explore].
type Exploration struct {
	Runs     int                      // finished runs with faults, and the first run without faults
	Survived map[kinds.Fault]int      // runs with one fault that were survived
	Missed   int                      // runs in which a fault did not happen, since the operator did something else before
	Singles  int                      // possible runs with one fault
	Repeated int                      // crashes that Singles leaves out, since another crash leaves the same for the next process
	Spared   int                      // faults that Singles leaves out, since an action of the scenario asks for no faults after it
	Done     int                      // runs with one fault that were done
	Pairs    int                      // possible runs with two faults
	Tried    int                      // runs with two faults that were survived
	Seed     uint64                   // the seed of the sample; 0 if there is none
	Late     int                      // runs that the options asked for, and that End prevented or Deadline ended
	Failures []Failure                // fail says in which order
	Replayed string                   // the trace of a replay
	Rights   map[request.Right]string // what the operator asked for in all runs, and a request that needs it
	Random   []string                 // places at which two runs without faults differ

	// Unfinished says where a run was when the deadline ended it: the runs without faults, or else the first run with faults. It is "" if
	// the deadline ended none.
	Unfinished string

	Notes []string // what looks wrong in the run without faults, whether or not that run fails

	Hung bool // a run hangs, so no further run has begun

	Silenced map[kinds.Finding]int // runs with findings of the kinds that the scenario leaves out

	baseline *trace.Trace // the trace of the run without faults
}

// Failure is a run that failed.
type Failure struct {
	Kind   kinds.Finding // "": the scenario could not be run
	Faults []plan.Fault
	Err    error
	Trace  string
	Past   []string // writes of processes that began with an old cache, while the cache was behind
	Cause  string   // see failure.CauseOf
	Varies bool     // a second run with the same faults ended otherwise

	asked  bool // the error is about something that the scenario checks, and not only a difference between runs
	shown  bool // the trace names the object that is wrong
	length int  // the number of lines of the trace
	trace  *trace.Trace
}

// addRights adds the rights that the operator asked for in a run.
func (x *Exploration) addRights(of *result.Result) {
	for right, request := range of.Rights {
		if known, ok := x.Rights[right]; !ok || request < known { // the order in which the runs end is random
			x.Rights[right] = request
		}
	}
}

// fail inserts a failure in its order: first those that are certain, then those about what is left outside of the cluster, then those that
// depend on timing, and broken conventions last. Among them, those with fewer faults come first, then those that break a check of the
// scenario, then those whose trace names the object that is wrong, then those with shorter traces.
func (x *Exploration) fail(of *result.Result) {
	f := Failure{Faults: of.Faults, Err: of.Err, Trace: of.Trace.SinceFault(), trace: of.Trace, Past: of.Past}
	if f.Trace != "" {
		f.Kind = failure.KindOf(of.Err)
	}
	f.asked = failure.IsAsked(of.Err)
	object := failure.ObjectOf(of.Err)
	f.Cause, f.shown = failure.CauseOf(of.Err), object == "" || strings.Contains(f.Trace, object)
	x.insert(f)
}

// countSilenced counts a run for each kind of finding in it that is left out.
func (x *Exploration) countSilenced(of *result.Result) {
	for kind := range of.Silenced {
		x.Silenced[kind]++
	}
}

// hasFaults reports whether a run with faults has failed.
func (x *Exploration) hasFaults() bool {
	return slices.ContainsFunc(x.Failures, func(f Failure) bool { return len(f.Faults) > 0 })
}

// insert inserts a failure in the order that fail describes.
func (x *Exploration) insert(f Failure) {
	f.length = strings.Count(f.Trace, "\n")
	at, _ := slices.BinarySearchFunc(x.Failures, f, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(rankOf(a.Kind), rankOf(b.Kind)), cmp.Compare(len(a.Faults), len(b.Faults)),
			cmp.Compare(orderOf(a.asked), orderOf(b.asked)), cmp.Compare(orderOf(a.shown), orderOf(b.shown)), cmp.Compare(a.length, b.length), strings.Compare(plan.FormatFaults(a.Faults), plan.FormatFaults(b.Faults)))
	})
	x.Failures = slices.Insert(x.Failures, at, f)
	for i := 1; i < min(len(x.Failures), 3); i++ {
		x.Failures[i].trace = nil // only the trace of the first failure is shown whole
	}
}

// orderOf returns a number that sorts true before false.
func orderOf(first bool) int {
	if first {
		return 0
	}
	return 1
}

// rankOf returns the rank of a kind of finding in a report: findings that are certain come first, then what is left outside of the cluster
// or in objects of others, then what depends on timing, and then broken conventions.
func rankOf(kind kinds.Finding) int {
	switch kind {
	case kinds.LeavesOutside, kinds.LeavesEntry:
		return 1
	case kinds.DependsOnTiming:
		return 2
	case kinds.BreaksConvention:
		return 3
	}
	return 0
}

// Timelines returns what happened in the run of the first failure, and in the run without faults. Both are empty if no
// run failed.
func (x *Exploration) Timelines() (failed, without []trace.Moment) {
	if len(x.Failures) == 0 || x.Failures[0].trace == nil {
		return nil, nil
	}
	failed = x.Failures[0].trace.Timeline()
	if x.baseline != nil && x.baseline != x.Failures[0].trace {
		without = x.baseline.Timeline()
	}
	return failed, without
}
