package reconciletest

import (
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/plan"
)

// FaultKind is a kind of fault, such as "crash before". The table of the faults in docs/testing.md lists all:
// https://github.com/opblocks/opblocks/blob/main/docs/testing.md#the-faults.
type FaultKind = kinds.Fault

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind FaultKind // what goes wrong
	At   string    // the request, as [Request.String] returns it, the change of an object, or its deletion by the user
	Nth  int       // its number among the requests or changes of that name; 1 is the first
}

// String returns the fault in the form that [Replay] accepts, such as "crash after: create Deployment default/web #1".
func (f Fault) String() string { return plan.Fault(f).String() }

// faultsOf returns the engine's faults in this package's type.
func faultsOf(faults []plan.Fault) []Fault {
	var all []Fault
	for _, f := range faults {
		all = append(all, Fault(f))
	}
	return all
}

func formatFaults(faults []Fault) string {
	all := make([]plan.Fault, len(faults))
	for i, f := range faults {
		all[i] = plan.Fault(f)
	}
	return plan.FormatFaults(all)
}
