package reconciletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what came of an exploration.
type Report struct {
	Runs     int
	Survived map[FaultKind]int // of the runs with a single fault
	Without  []FaultKind       // that were left out
	Missed   int               // runs whose fault did not come to be, since they went another way before
	Pairs    int               // possible runs with two faults; 0 if they were not asked for
	Tried    int               // of the pairs
	Seed     uint64            // of the sample of pairs
	Elapsed  time.Duration
	Failures []Failure // the one with the shortest trace first
	Replayed string    // the trace of a replay

	test string
}

// Failure is a run that broke a rule.
type Failure struct {
	Faults []Fault // none: it fails without any
	Err    error
	Trace  string // a table: the pass, what happened, what came of it

	length int
}

func (r *Report) add(of *result) {
	switch {
	case of.err != nil:
		r.fail(of)
	case of.struck < len(of.faults):
		r.Missed++
	case len(of.faults) == 1:
		r.Survived[of.faults[0].Kind]++
	default:
		r.Tried++
	}
}

func (r *Report) fail(of *result) {
	f := Failure{Faults: of.faults, Err: of.err, Trace: of.trace.sinceFault()}
	f.length = strings.Count(f.Trace, "\n")
	at, _ := slices.BinarySearchFunc(r.Failures, f, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(len(a.Faults), len(b.Faults)), cmp.Compare(a.length, b.length), strings.Compare(formatFaults(a.Faults), formatFaults(b.Faults)))
	})
	r.Failures = slices.Insert(r.Failures, at, f)
}

// others is how many failures are named beside the first one.
const others = 10

// String gives what was survived, or the shortest failure with its trace.
func (r *Report) String() string {
	var b strings.Builder
	if r.Replayed != "" {
		fmt.Fprintf(&b, "replayed:\n\n%s\n", r.Replayed)
	}
	switch {
	case len(r.Failures) > 0:
	case r.Replayed != "":
		fmt.Fprintf(&b, "survived")
		return b.String()
	default:
		fmt.Fprintf(&b, "survived %s", r.survived())
		return b.String()
	}
	first := &r.Failures[0]
	fmt.Fprintf(&b, "%s\n\n%s\n", first.headline(), first.Err)
	if first.isOfThePast() {
		b.WriteString("The process is shown the past: before it deletes something, or does something outside, it has to read from the API server\n" +
			"what that is founded on (mgr.GetAPIReader, or reconcile.Checkpoint).\n")
	}
	if first.Trace != "" {
		fmt.Fprintf(&b, "\npass  what happened, and what came of it (passes that sent nothing are left out)\n%s", first.Trace)
	}
	if len(first.Faults) > 0 {
		fmt.Fprintf(&b, "\nreplay it: %s='%s' go test -v -run '^%s$'\n", replayVariable, formatFaults(first.Faults), r.test)
	}
	if n := len(r.Failures) - 1; n > 0 {
		fmt.Fprintf(&b, "\n%s of %d not survived; others:\n", plural(n+1, "run"), r.Runs)
		for _, f := range r.Failures[1 : min(n, others)+1] {
			fmt.Fprintf(&b, "  %s: %s\n", formatFaults(f.Faults), shortened(strings.Join(strings.Fields(f.Err.Error()), " "), widestAnswer))
		}
	}
	return b.String()
}

// isOfThePast reports whether a process was shown what is older than itself.
func (f *Failure) isOfThePast() bool {
	return slices.ContainsFunc(f.Faults, func(fault Fault) bool {
		return fault.Kind == CrashUnseen || fault.Kind == CrashDowntimeUnseen || fault.Kind == TimeTravel
	})
}

func (f *Failure) headline() string {
	switch len(f.Faults) {
	case 0:
		if f.Trace == "" {
			return "It could not be played."
		}
		return "It fails without any fault."
	case 1:
		return fmt.Sprintf("It does not survive one fault: %s.", f.Faults[0])
	}
	return fmt.Sprintf("It does not survive %d faults: %s.", len(f.Faults), formatFaults(f.Faults))
}

// survived counts what was tried.
func (r *Report) survived() string {
	total := 0
	var kinds []string
	for _, k := range faultKinds {
		if n := r.Survived[k.kind]; n > 0 {
			total += n
			kinds = append(kinds, fmt.Sprintf("%d %s", n, k.kind))
		}
	}
	text := plural(total, "single fault")
	if total > 0 {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	if r.Pairs > 0 {
		text += fmt.Sprintf(" and %d of %s (seed %d)", r.Tried, plural(r.Pairs, "pair"), r.Seed)
	}
	if r.Missed > 0 {
		text += fmt.Sprintf("; in %s the fault did not come to be", plural(r.Missed, "run"))
	}
	if len(r.Without) > 0 {
		text += fmt.Sprintf("; left out: %q", r.Without)
	}
	return fmt.Sprintf("%s: %s in %s, %.0f a second", text, plural(r.Runs, "run"), r.Elapsed.Round(time.Millisecond), float64(r.Runs)/r.Elapsed.Seconds())
}
