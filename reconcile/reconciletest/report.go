package reconciletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/simulation"
)

// Report is the result of an exploration.
type Report struct {
	Runs     int               // all runs, including the first one without faults; not the others without faults
	Survived map[FaultKind]int // runs with a single fault that were survived
	Skipped  []FaultKind       // kinds that were left out by [SkipFaults]
	Missed   int               // runs in which a fault did not happen, since the operator did something else before
	Singles  int               // possible runs with one fault
	Pairs    int               // possible runs with two faults; 0 unless [Depth] is 2
	Tried    int               // runs with two faults that were survived
	Seed     uint64            // of the sample: see [Limit], [LimitPairs] and [Budget]; 0 if there is none
	Late     int               // runs that had not begun when the [Budget] was used up, or when the test's deadline came
	Elapsed  time.Duration     // of real time
	Failures []Failure         // those with fewer faults first, then those with shorter traces; broken conventions last
	Silenced int               // failures that were left out by [SkipFindings]
	Replayed string            // the trace of a replay; "" if there was none
	Rights   []Right           // what the operator asked the API server for in all runs, sorted; see [AssertRole]

	// Unfinished is not nil if the test's deadline came before all runs were done. The deadline is what go test -timeout sets,
	// ten minutes by default; the exploration ends shortly before it, since at the deadline the test program ends without a
	// report.
	Unfinished error

	test      string
	done      int              // runs with one fault
	budget    time.Duration    // that was used up; 0: it was not
	requestOf map[Right]string // a request that needed the right

	failedRun, soundRun []simulation.Moment // of the first failure, and without faults
	silent              []FindingKind
}

// Failure is a run that broke a rule.
type Failure struct {
	Kind   FindingKind // "": the scenario could not be run
	Faults []Fault     // empty: the run fails without faults, or the scenario could not be run
	Err    error       // which rule was broken, and how
	Trace  string      // a table: the pass, what happened, and the answer
}

// add adds the engine's result.
func (r *Report) add(x *simulation.Exploration) {
	r.Runs, r.Missed, r.Pairs, r.Tried, r.Seed, r.Replayed = x.Runs, x.Missed, x.Pairs, x.Tried, x.Seed, x.Replayed
	r.addRights(x.Rights)
	all := len(x.Failures)
	x.Failures = slices.DeleteFunc(x.Failures, func(f simulation.Failure) bool { return r.isSilenced(FindingKind(f.Kind)) })
	r.Silenced = all - len(x.Failures)
	r.failedRun, r.soundRun = x.Timelines()
	r.Singles, r.Late, r.done = x.Singles, x.Late, x.Done
	for kind, n := range x.Survived {
		r.Survived[FaultKind(kind)] = n
	}
	for i := range x.Failures {
		f := &x.Failures[i]
		r.Failures = append(r.Failures, Failure{FindingKind(f.Kind), faultsOf(f.Faults), f.Err, f.Trace})
	}
}

// How many failures are named after the first one, and how many characters of each error are shown.
const (
	otherFailures = 10
	shortError    = 160
)

// String returns which faults were survived, or else the first failure with its trace and how to replay it. After a replay
// it returns the trace of that too.
func (r *Report) String() string {
	var b strings.Builder
	if r.Replayed != "" {
		fmt.Fprintf(&b, "replayed:\n\n%s\n", r.Replayed)
	}
	switch {
	case len(r.Failures) > 0:
		r.writeFailures(&b)
	case r.Replayed != "":
		b.WriteString("survived")
	default:
		b.WriteString("survived " + r.survived())
	}
	if r.Unfinished != nil {
		b.WriteString("\n" + r.Unfinished.Error())
	}
	return b.String()
}

func (r *Report) writeFailures(b *strings.Builder) {
	first := &r.Failures[0]
	fmt.Fprintf(b, "%s\n\n%s\n", first.headline(), first.Err)
	if first.showsThePast() {
		b.WriteString("The process sees the past. Before it deletes something, or has an effect outside of the cluster, it must read from the API server\n" +
			"what that depends on (mgr.GetAPIReader, or reconcile.Checkpoint).\n")
	}
	if first.Trace != "" {
		fmt.Fprintf(b, "\npass  what happened, and the answer (passes that sent nothing are left out)\n%s", first.Trace)
	}
	if len(first.Faults) > 0 {
		fmt.Fprintf(b, "\nreplay it: %s\n", r.replayCommand(first))
	}
	n := len(r.Failures) - 1
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s of %d not survived; others:\n", simulation.Plural(n+1, "run"), r.Runs)
	for _, f := range r.Failures[1 : min(n, otherFailures)+1] {
		fmt.Fprintf(b, "  %s: %s\n", formatFaults(f.Faults), simulation.Shorten(strings.Join(strings.Fields(f.Err.Error()), " "), shortError))
	}
}

// replayCommand returns the command that runs a failure again.
func (r *Report) replayCommand(f *Failure) string {
	return fmt.Sprintf("%s='%s' go test -v -run '^%s$'", replayVariable, formatFaults(f.Faults), r.test)
}

// showsThePast reports whether a process saw a cache that was older than the process.
func (f *Failure) showsThePast() bool {
	return slices.ContainsFunc(f.Faults, func(fault Fault) bool {
		return fault.Kind == CrashUnseen || fault.Kind == CrashDowntimeUnseen || fault.Kind == TimeTravel
	})
}

func (f *Failure) headline() string {
	switch len(f.Faults) {
	case 0:
		if f.Trace == "" {
			return "The scenario could not be run."
		}
		return "It fails without any fault."
	case 1:
		return fmt.Sprintf("It does not survive one fault: %s.", f.Faults[0])
	}
	return fmt.Sprintf("It does not survive %d faults: %s.", len(f.Faults), formatFaults(f.Faults))
}

// survived returns the counts of what was tried, as text.
func (r *Report) survived() string {
	total := 0
	var kinds []string
	for _, kind := range faultKinds() {
		if n := r.Survived[kind]; n > 0 {
			total += n
			kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
		}
	}
	text := simulation.Plural(total, "single fault")
	if r.isSampled() {
		text = fmt.Sprintf("%d of %s", total, simulation.Plural(r.Singles, "single fault"))
	}
	if total > 0 {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	if r.Pairs > 0 {
		text += fmt.Sprintf(" and %d of %s", r.Tried, simulation.Plural(r.Pairs, "pair"))
	}
	if r.Seed > 0 {
		text += fmt.Sprintf(" (seed %d)", r.Seed)
	}
	text += r.leftOut()
	if r.Missed > 0 {
		text += fmt.Sprintf("; in %s the fault did not happen", simulation.Plural(r.Missed, "run"))
	}
	if len(r.Skipped) > 0 {
		text += fmt.Sprintf("; skipped: %q", r.Skipped)
	}
	return fmt.Sprintf("%s: %s in %s, %.0f a second", text, simulation.Plural(r.Runs, "run"), r.Elapsed.Round(time.Millisecond), float64(r.Runs)/r.Elapsed.Seconds())
}
