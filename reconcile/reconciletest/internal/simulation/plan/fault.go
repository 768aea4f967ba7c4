// Package plan decides which faults a run has, and where. rule.go says which kinds of faults can be injected at a point. A [Plan] has the
// faults of one run, and the points that the run has reached. sample.go chooses among the faults of all runs.
package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind kinds.Fault
	At   string // the request, the change of an object, or its deletion by the user
	Nth  int    // its number among the requests or changes of that name; 1 is the first
}

// String returns the fault in the form that ParseFaults reads.
func (f Fault) String() string { return fmt.Sprintf("%s: %s #%d", f.Kind, f.At, f.Nth) }

// separator separates the faults of a run.
const separator = "; "

// FormatFaults returns faults in the form that ParseFaults reads.
func FormatFaults(faults []Fault) string {
	all := make([]string, len(faults))
	for i, f := range faults {
		all[i] = f.String()
	}
	return strings.Join(all, separator)
}

// ParseFaults parses what FormatFaults returns.
func ParseFaults(text string) ([]Fault, error) {
	var faults []Fault
	for part := range strings.SplitSeq(text, separator) {
		f, err := parseFault(part)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(text string) (Fault, error) {
	kind, rest, found := strings.Cut(strings.TrimSpace(text), ": ")
	number := strings.LastIndex(rest, " #")
	if !found || number < 0 {
		return Fault{}, fmt.Errorf("fault %q: want the form %q", text, Fault{kinds.CrashAfter, "create Deployment default/web", 1})
	}
	nth, err := strconv.Atoi(rest[number+2:])
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	if !slices.Contains(kinds.Faults(), kinds.Fault(kind)) {
		return Fault{}, fmt.Errorf("fault %q: there is no kind %q", text, kind)
	}
	return Fault{kinds.Fault(kind), rest[:number], nth}, nil
}
