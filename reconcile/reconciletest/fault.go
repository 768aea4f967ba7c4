package reconciletest

import (
	"slices"

	"github.com/opblocks/opblocks/internal/simulation"
)

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind FaultKind // what goes wrong
	At   string    // the request, as [Request.String] returns it, the change of an object, or its deletion by the user
	Nth  int       // of the requests or changes of that name; 1 is the first
}

// FaultKind is what goes wrong.
type FaultKind string

// What goes wrong, and where it is tried. A write is a request to the API server that may change something. An effect is
// a call of [Process.Effect], and a query one of [Process.Query]. HTTP requests by [Process.RoundTripper] are effects or
// queries too. Every object means every object that the process has in its queue or has reconciled.
const (
	// CrashBefore: the process dies before it sends a write or has an effect.
	CrashBefore FaultKind = "crash before"
	// CrashAfter: the process dies after a write is stored or an effect has happened, and before it gets the answer.
	CrashAfter FaultKind = "crash after"
	// CrashDowntime: as CrashAfter, and the user's next action happens before the process starts again.
	CrashDowntime FaultKind = "crash with downtime after"
	// CrashUnseen: as CrashAfter, for a write of a kind that the process watches. The cache of the next process does not
	// show the write, nor anything later of that kind, until one pass of every object has run. This happens when a standby
	// replica takes over whose watch lags, or when an API server that lags answers a list.
	CrashUnseen FaultKind = "crash unseen after"
	// CrashDowntimeUnseen: as CrashUnseen, and the user's next action happens before the process starts again.
	CrashDowntimeUnseen FaultKind = "crash with downtime unseen after"
	// ConcurrentAction: the user's next action happens just before a write or an effect, in the middle of the pass.
	ConcurrentAction FaultKind = "concurrent action before"
	// Timeout: a write is stored, or an effect happens, and its answer is lost: the operator gets an error that wraps
	// [context.DeadlineExceeded].
	Timeout FaultKind = "timeout after"
	// Conflict: another writer adds an annotation, a label and, unless the object is being deleted, a finalizer to the
	// object just before an update, patch or apply. Before a write of the status it writes a condition too, if the kind's
	// conditions are of type metav1.Condition.
	Conflict FaultKind = "conflict at"
	// TooManyRequests: the API server, or the peer of [Process.RoundTripper], refuses a request, and asks to retry after a
	// second.
	TooManyRequests FaultKind = "too many requests at"
	// InternalError: the API server answers a request with an internal error (500), or the peer of [Process.RoundTripper]
	// answers that it is not available (503).
	InternalError FaultKind = "internal error at"
	// ConnectionRefused: a request to the API server, an effect or a query does not arrive.
	ConnectionRefused FaultKind = "connection refused at"
	// AlreadyExists: a creation is stored, its answer is lost on the way, and the operator gets the answer to its client's
	// second attempt. A creation with a generated name is refused and not stored, as if the name were taken.
	AlreadyExists FaultKind = "already exists at"
	// NotFound: another writer deletes an object that the operator created, just before the operator writes or deletes it.
	NotFound FaultKind = "not found at"
	// Stale: the cache does not show a change of an object, nor later ones of that kind, until one more pass of every
	// object has run, one object has had five, or a pass has waited for 10 seconds.
	Stale FaultKind = "stale after"
	// StaleLong: as Stale, until two more passes of every object have run.
	StaleLong FaultKind = "stale for long after"
	// StaleObjects: as Stale, for a kind that the process watches or reads in the cache both as whole objects and as metadata.
	// The cache has an informer for each, and that of metadata shows the change.
	StaleObjects FaultKind = "stale objects after"
	// StaleMetadata: as StaleObjects, the other way round: the informer of whole objects shows the change.
	StaleMetadata FaultKind = "stale metadata after"
	// MissedEvent: the watch breaks at a change of an object. When the operator has nothing left to do but wait, or one
	// object has had five passes, the kind is listed again, and all changes of an object meanwhile arrive as one event.
	MissedEvent FaultKind = "missed event of"
	// TimeTravel: when the operator has nothing left to do but wait after a change of an object, another process takes over.
	// Its cache shows that kind as it was before the change, until one pass of every object has run.
	TimeTravel FaultKind = "time travel to before"
	// LeaderChange: another replica becomes the leader before a write or an effect of a pass, and works until it is quiet.
	// Only then does the old leader continue: it finishes its pass, and then its process ends.
	LeaderChange FaultKind = "leader change before"
	// ForeignFinalizer: the user deletes an object, and the finalizer of another controller outlasts the operator's own: it
	// is removed only when the operator is quiet. If the operator had a finalizer on the object, its last pass over the
	// object must not have failed by then.
	ForeignFinalizer FaultKind = "foreign finalizer at"
)

// String returns the fault in the form that [Replay] accepts, such as "crash after: create Deployment default/web #1".
func (f Fault) String() string { return f.simulated().String() }

func (f Fault) simulated() simulation.Fault {
	return simulation.Fault{Kind: simulation.FaultKind(f.Kind), At: f.At, Nth: f.Nth}
}

// faultsOf returns the engine's faults in this package's type.
func faultsOf(faults []simulation.Fault) []Fault {
	var all []Fault
	for _, f := range faults {
		all = append(all, Fault{FaultKind(f.Kind), f.At, f.Nth})
	}
	return all
}

func formatFaults(faults []Fault) string {
	all := make([]simulation.Fault, len(faults))
	for i, f := range faults {
		all[i] = f.simulated()
	}
	return simulation.FormatFaults(all)
}

// faultKinds returns all kinds, in the order in which they are tried.
func faultKinds() []FaultKind {
	var all []FaultKind
	for _, kind := range simulation.FaultKinds() {
		all = append(all, FaultKind(kind))
	}
	return all
}

func isKind(kind FaultKind) bool { return slices.Contains(faultKinds(), kind) }
