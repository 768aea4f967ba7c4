package reconciletest

import (
	"fmt"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// Report is the result of an exploration.
type Report struct {
	Runs     int               // all runs, including the first one without faults; not the others without faults
	Survived map[FaultKind]int // runs with a single fault that were survived
	Skipped  []FaultKind       // kinds that were left out by [Options.SkipFaults]
	Missed   int               // runs in which a fault did not happen, since the operator did something else before
	Singles  int               // possible runs with one fault
	Repeated int               // crashes that Singles leaves out, since another one leaves the same state: a crash before a write, and a crash after the previous write
	Spared   int               // faults that Singles leaves out, since [Action.WithoutFaults] asks for it
	Pairs    int               // possible runs with two faults; 0 without [Options.Pairs]
	Tried    int               // runs with two faults that were survived
	Seed     uint64            // the seed of the sample, see [Options.Seed]; 0 without a sample
	Late     int               // runs that had not begun when [Options.Budget] was used up, or when the test's deadline came
	Elapsed  time.Duration     // the real time that the exploration took
	Failures []Failure         // see Failure for the order
	Silenced int               // findings that were left out by [Options.SkipFindings]: at most one of each kind in a run
	Replayed string            // the trace of a replay; "" if there was none
	Rights   []Right           // what the operator asked the API server for in all runs, sorted; see [AssertRole]
	Random   []string          // places that are not compared, since two runs without faults differ there: "Secret default/web: data.password"

	// Notes say what looks wrong in the run without faults but is not a failure, and what may be the reason for a failure: passes over
	// an object that all fail until the object is deleted, or a time of the real clock. The report begins with them.
	Notes []string

	// Unfinished is not nil if the test's deadline came before the runs without faults were done, or if a run hangs. The deadline is
	// what go test -timeout sets, ten minutes by default; the exploration ends shortly before it, since at the deadline the test
	// program ends without a report. It says where a run was that had begun; if a pass of that run does not return, where it
	// hangs. If the deadline leaves out only runs with faults, the report says how many ([Report.Late]), and that is not a failure.
	Unfinished error

	test      string
	done      int              // runs with one fault that were done
	asks      bool             // the scenario says what must be true: runs are not only compared with runs without faults
	faultless bool             // [Options.WithoutFaults] was set
	late      string           // why the deadline left out runs with faults; "": it left out none
	budget    time.Duration    // the budget, if it was used up; 0: it was not
	requestOf map[Right]string // a request that needed the right

	failedRun, soundRun []trace.Moment        // what happened in the first failure, and without faults
	silenced            map[kinds.Finding]int // how many findings of each kind were left out
}

// Failure is a run that broke a rule. In a report, failures with fewer faults come first, then failures whose trace names the object
// that is wrong, then shorter traces. Failures that depend on timing come after the others, and broken conventions last.
type Failure struct {
	Kind   FindingKind // empty: the scenario could not be run
	Faults []Fault     // empty: the run fails without faults, or the scenario could not be run
	Err    error       // which rule was broken, and how
	Trace  string      // a table: the pass, what happened, and the answer
	Cause  string      // the same for failures that probably have one cause: what differs, without names of objects and numbers
	// Varies is set if a second run with the same faults ended otherwise, so the operator is not deterministic. Only
	// the first failure gets a second run.
	Varies bool

	past []string // writes that a process sent while its cache showed the past
}

// add adds the engine's result.
func (r *Report) add(x *simulation.Exploration) {
	r.Runs, r.Missed, r.Pairs, r.Tried, r.Seed, r.Replayed = x.Runs, x.Missed, x.Pairs, x.Tried, x.Seed, x.Replayed
	r.addRights(x.Rights)
	r.Random, r.Notes = x.Random, x.Notes
	r.silenced = x.Silenced
	for _, n := range x.Silenced {
		r.Silenced += n
	}
	r.failedRun, r.soundRun = x.Timelines()
	r.Singles, r.Repeated, r.Spared, r.Late, r.done = x.Singles, x.Repeated, x.Spared, x.Late, x.Done
	for kind, n := range x.Survived {
		r.Survived[FaultKind{kind}] = n
	}
	for i := range x.Failures {
		f := &x.Failures[i]
		r.Failures = append(r.Failures, Failure{Kind: FindingKind{f.Kind}, Faults: faultsOf(f.Faults), Err: f.Err, Trace: f.Trace, Cause: f.Cause, Varies: f.Varies, past: f.Past})
	}
}

// String returns which faults were survived, or else the first failure with its trace and how to replay it, and the others by their kinds.
// It also says what was left out. After a replay it also has the trace of the replayed run.
func (r *Report) String() string {
	var b strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n\n", note)
	}
	if r.Replayed != "" {
		fmt.Fprintf(&b, "replayed:\n\n%s\n", r.Replayed)
	}
	switch {
	case len(r.Failures) > 0:
		r.writeFailures(&b)
	case r.Replayed != "":
		b.WriteString("survived")
	case r.faultless && r.Unfinished == nil:
		fmt.Fprintf(&b, "works without faults: none of %s was tried, in %s", text.Plural(r.Singles, "possible fault"), r.Elapsed.Round(time.Millisecond))
	case r.Unfinished != nil && r.Singles == 0: // nothing was survived yet
		return r.Unfinished.Error()
	default:
		b.WriteString("survived " + r.survived())
		if !r.asks {
			b.WriteString("\n" + notAsked)
		}
	}
	r.writeLeftOut(&b)
	if r.late != "" {
		b.WriteString("\n" + r.late)
	}
	if r.Unfinished != nil {
		b.WriteString("\n" + r.Unfinished.Error())
	}
	return b.String()
}

// notAsked is the line of a report that warns that the scenario has no checks, so that runs were only compared with each other.
const notAsked = "the runs were only compared: what must be true in the end was not asked (Action.Then, Scenario.Finally)"

// isComplete reports whether all single faults were tried that the scenario has.
func (r *Report) isComplete() bool {
	tried := r.Singles > 0 || len(r.Failures) == 0 // if false, not even the run without faults came to its end
	return tried && r.done >= r.Singles && r.Unfinished == nil
}

// survived returns the counts of what was tried, as text.
func (r *Report) survived() string {
	total := 0
	var parts []string
	for _, kind := range kinds.Faults() {
		if n := r.Survived[FaultKind{kind}]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	line := text.Plural(total, "single fault")
	if r.isSampled() {
		line = fmt.Sprintf("%d of %s", total, text.Plural(r.Singles, "single fault"))
	}
	if total > 0 {
		line += " (" + strings.Join(parts, ", ") + ")"
	}
	if r.Pairs > 0 {
		line += fmt.Sprintf(" and %d of %s", r.Tried, text.Plural(r.Pairs, "pair"))
	}
	if r.Seed > 0 {
		line += fmt.Sprintf(" (seed %d)", r.Seed)
	}
	if r.Repeated > 0 {
		line += fmt.Sprintf("; %s not tried, since another one leaves the same", text.Plural(r.Repeated, "crash fault"))
	}
	if r.Spared > 0 {
		line += fmt.Sprintf("; %s not tried, after actions with WithoutFaults", text.Plural(r.Spared, "fault"))
	}
	line += r.leftOut()
	if r.Missed > 0 {
		line += fmt.Sprintf("; in %s the fault did not happen", text.Plural(r.Missed, "run"))
	}
	if len(r.Skipped) > 0 {
		line += fmt.Sprintf("; skipped: %q", r.Skipped)
	}
	return fmt.Sprintf("%s: %s in %s, %s", line, text.Plural(r.Runs, "run"), r.Elapsed.Round(time.Millisecond), pace(r.Runs, r.Elapsed))
}

// pace returns how fast runs were, as text.
func pace(runs int, elapsed time.Duration) string {
	if each := elapsed / time.Duration(max(runs, 1)); each > time.Second {
		return fmt.Sprintf("%s each", each.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%.0f a second", float64(runs)/elapsed.Seconds())
}
