package reconciletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Limits of a report.
const (
	maxFaults     = 8   // the largest number of faults that are listed for a cause
	maxPlaces     = 5   // the largest number of fields that are listed as not compared
	maxPastWrites = 3   // the largest number of listed writes of a process whose cache showed the past
	shortError    = 160 // the largest number of characters of a cause in a list
)

// writeFailures writes the first failure with its trace, and lists the others.
func (r *Report) writeFailures(b *strings.Builder) {
	first := &r.Failures[0]
	fmt.Fprintf(b, "%s\n\n%s\n%s", first.headline(), first.Err, first.hints())
	if first.Trace != "" {
		fmt.Fprintf(b, "\npass  what happened, and the answer (passes that sent nothing are left out)\n%s", first.Trace)
	}
	if len(first.Faults) > 0 {
		fmt.Fprintf(b, "\nreplay it: %s\n", r.replayCommand(first))
	}
	if len(r.Failures) == 1 {
		if r.isSampled() || r.Pairs > 0 {
			fmt.Fprintf(b, "\n%s\n", r.findings())
		}
		return
	}
	fmt.Fprintf(b, "\n%s; the others, by what differs:\n", r.findings())
	for _, kind := range kinds.Findings() {
		writeOthers(b, kind, r.Failures[1:])
	}
}

// findings returns the number of failures and of runs. After a sample it also says how many of the possible faults were
// tried.
func (r *Report) findings() string {
	line := fmt.Sprintf("%s in %s", text.Plural(len(r.Failures), "finding"), text.Plural(r.Runs, "run"))
	if r.isSampled() {
		line += fmt.Sprintf(", which tried %d of %s (seed %d)", r.done, text.Plural(r.Singles, "single fault"), r.Seed)
	}
	if r.Pairs > 0 {
		tried := r.Tried
		for i := range r.Failures {
			if len(r.Failures[i].Faults) > 1 {
				tried++
			}
		}
		line += fmt.Sprintf(", and %d of %s (seed %d)", tried, text.Plural(r.Pairs, "pair"), r.Seed)
	}
	return line + r.leftOut()
}

// writeOthers lists the failures of a kind by their causes, and the faults that lead to each.
func writeOthers(b *strings.Builder, kind kinds.Finding, failures []Failure) {
	byCause := map[string][]*Failure{}
	var causes []string // in their order
	total := 0
	for i := range failures {
		f := &failures[i]
		if f.Kind.kind != kind {
			continue
		}
		total++
		if byCause[f.Cause] == nil {
			causes = append(causes, f.Cause)
		}
		byCause[f.Cause] = append(byCause[f.Cause], f)
	}
	if total == 0 {
		return
	}
	fmt.Fprintf(b, "%s: %d\n", kind, total)
	for _, cause := range causes {
		fmt.Fprintf(b, "  %s: %s\n", text.Plural(len(byCause[cause]), "run"), text.Shorten(cause, shortError))
		writeFaults(b, byCause[cause])
	}
}

// writeFaults lists the faults of failures: the first failure at each point, and then the others.
func writeFaults(b *strings.Builder, failures []*Failure) {
	seen := map[string]bool{}
	var first, later []string
	for _, f := range failures {
		at := "" // the point at which the last fault happened
		if n := len(f.Faults); n > 0 {
			at = fmt.Sprintf("%s #%d", f.Faults[n-1].At, f.Faults[n-1].Nth)
		}
		if seen[at] {
			later = append(later, f.faults())
			continue
		}
		seen[at] = true
		first = append(first, f.faults())
	}
	all := slices.Concat(first, later)
	for _, text := range all[:min(len(all), maxFaults)] {
		fmt.Fprintf(b, "    %s\n", text)
	}
	if left := len(all) - maxFaults; left > 0 {
		fmt.Fprintf(b, "    and %d more\n", left)
	}
}

// writeLeftOut writes which kinds of findings are left out, and what is not compared.
func (r *Report) writeLeftOut(b *strings.Builder) {
	var parts []string
	for _, kind := range kinds.Findings() {
		if n := r.silenced[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %q", n, kind))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "\nfindings left out by SkipFindings: %s", strings.Join(parts, ", "))
	}
	if len(r.Random) > 0 {
		fmt.Fprintf(b, "\nnot compared, since two runs without faults differ there (a random value, the order of a Go map, or a package variable): %s", firstOf(r.Random, maxPlaces))
	}
}

// firstOf returns the first texts as a list, at most as many as most says, and how many more there are.
func firstOf(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// replayCommand returns the command that runs a failure again.
func (r *Report) replayCommand(f *Failure) string {
	return fmt.Sprintf("%s='%s' go test -v -run '^%s$'", replayVariable, formatFaults(f.Faults), r.test)
}

// faults returns what went wrong, as text.
func (f *Failure) faults() string {
	if len(f.Faults) == 0 {
		return "without faults"
	}
	return formatFaults(f.Faults)
}

// headlines are how reports begin, by the kind of the failure.
var headlines = map[kinds.Finding]string{
	kinds.DoesNotSurvive:   "It does not survive",
	kinds.DoesNotSucceed:   "It does not succeed after",
	kinds.DoesNotRest:      "It does not come to rest after",
	kinds.LeaksSecret:      "It leaks a secret after",
	kinds.LeavesOutside:    "It leaves something outside of the cluster after",
	kinds.LeavesEntry:      "It leaves an entry behind after",
	kinds.CreatesDuplicate: "It creates a duplicate after",
	kinds.ChangesForeign:   "It changes what is not its own after",
	kinds.DependsOnTiming:  "It depends on timing, as is shown by",
	kinds.BreaksConvention: "It breaks a convention after",
}

func (f *Failure) headline() string {
	switch {
	case len(f.Faults) == 0 && f.Trace == "":
		return "The scenario could not be run."
	case len(f.Faults) == 0 && f.Kind.kind == kinds.BreaksConvention:
		return "It breaks a convention without any fault."
	case len(f.Faults) == 0 && f.Kind.kind == kinds.LeavesOutside:
		return "It leaves something outside of the cluster, without any fault."
	case len(f.Faults) == 0 && f.Kind.kind == kinds.LeavesEntry:
		return "It leaves an entry in an object of somebody else, without any fault."
	case len(f.Faults) == 0 && f.Kind.kind == kinds.ChangesForeign:
		return "It changes what is not its own, without any fault."
	case len(f.Faults) == 0 && f.Kind.kind == kinds.DoesNotSucceed:
		return "It does not succeed without any fault."
	case len(f.Faults) == 0:
		return "It fails without any fault."
	case len(f.Faults) == 1:
		return fmt.Sprintf("%s one fault: %s.", headlines[f.Kind.kind], f.Faults[0])
	}
	return fmt.Sprintf("%s %d faults: %s.", headlines[f.Kind.kind], len(f.Faults), formatFaults(f.Faults))
}

// hints returns lines about how to avoid the failure, as far as its faults show that.
func (f *Failure) hints() string {
	var b strings.Builder
	switch {
	case !f.showsThePast():
	case len(f.past) > 0:
		fmt.Fprintf(&b, "The process sees the past. Before it sends %s, it must read from the API server\n"+
			"what that depends on (mgr.GetAPIReader, or reconcile.Checkpoint).\n", firstOf(f.past, maxPastWrites))
	default:
		b.WriteString("The process sees the past: at its beginning the cache shows an earlier state.\n")
	}
	if f.Varies {
		b.WriteString("The same once more ends otherwise, so the operator is not deterministic: a random value, or the order of a Go map, decides.\n")
	}
	return b.String()
}

// showsThePast reports whether a process saw a cache that was older than the process.
func (f *Failure) showsThePast() bool {
	return slices.ContainsFunc(f.Faults, func(fault Fault) bool {
		rule := kinds.RuleOf(fault.Kind.kind)
		return rule != nil && rule.ShowsPast
	})
}
