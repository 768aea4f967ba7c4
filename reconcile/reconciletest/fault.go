package reconciletest

import (
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
)

// FaultKind is a kind of fault. Its values are the fields of [Faults].
type FaultKind struct{ kind kinds.Fault }

// String returns the kind as reports print it, such as "crash before".
func (k FaultKind) String() string { return string(k.kind) }

// Faults has the kinds of faults. The table of the faults in docs/testing.md says what each is:
// https://github.com/opblocks/opblocks/blob/main/docs/testing.md#the-faults.
var Faults = struct {
	CrashBefore         FaultKind // "crash before"
	CrashAfter          FaultKind // "crash after"
	CrashDowntime       FaultKind // "crash with downtime after"
	CrashUnseen         FaultKind // "crash unseen after"
	CrashDowntimeUnseen FaultKind // "crash with downtime unseen after"
	ConcurrentAction    FaultKind // "concurrent action before"
	Timeout             FaultKind // "timeout after"
	TimeoutBefore       FaultKind // "timeout before"
	Conflict            FaultKind // "conflict at"
	TooManyRequests     FaultKind // "too many requests at"
	InternalError       FaultKind // "internal error at"
	ConnectionRefused   FaultKind // "connection refused at"
	AlreadyExists       FaultKind // "already exists at"
	NotFound            FaultKind // "not found at"
	LeaderChange        FaultKind // "leader change before"
	Stale               FaultKind // "stale after"
	StaleLong           FaultKind // "stale for long after"
	StaleObjects        FaultKind // "stale objects after"
	StaleMetadata       FaultKind // "stale metadata after"
	MissedEvent         FaultKind // "missed event of"
	MissedDeletion      FaultKind // "missed deletion of"
	TimeTravel          FaultKind // "time travel to before"
	ForeignFinalizer    FaultKind // "foreign finalizer at"
	Reversed            FaultKind // "reversed order of"
	StaleAnswer         FaultKind // "stale answer to"
	Outage              FaultKind // "outage from"

	WebhookUnreachable    FaultKind // "webhook unreachable at"
	WebhookPassedOver     FaultKind // "webhook passed over at"
	ConversionUnreachable FaultKind // "conversion unreachable at"
}{
	CrashBefore:         FaultKind{kinds.CrashBefore},
	CrashAfter:          FaultKind{kinds.CrashAfter},
	CrashDowntime:       FaultKind{kinds.CrashDowntime},
	CrashUnseen:         FaultKind{kinds.CrashUnseen},
	CrashDowntimeUnseen: FaultKind{kinds.CrashDowntimeUnseen},
	ConcurrentAction:    FaultKind{kinds.ConcurrentAction},
	Timeout:             FaultKind{kinds.Timeout},
	TimeoutBefore:       FaultKind{kinds.TimeoutBefore},
	Conflict:            FaultKind{kinds.Conflict},
	TooManyRequests:     FaultKind{kinds.TooManyRequests},
	InternalError:       FaultKind{kinds.InternalError},
	ConnectionRefused:   FaultKind{kinds.ConnectionRefused},
	AlreadyExists:       FaultKind{kinds.AlreadyExists},
	NotFound:            FaultKind{kinds.NotFound},
	LeaderChange:        FaultKind{kinds.LeaderChange},
	Stale:               FaultKind{kinds.Stale},
	StaleLong:           FaultKind{kinds.StaleLong},
	StaleObjects:        FaultKind{kinds.StaleObjects},
	StaleMetadata:       FaultKind{kinds.StaleMetadata},
	MissedEvent:         FaultKind{kinds.MissedEvent},
	MissedDeletion:      FaultKind{kinds.MissedDeletion},
	TimeTravel:          FaultKind{kinds.TimeTravel},
	ForeignFinalizer:    FaultKind{kinds.ForeignFinalizer},
	Reversed:            FaultKind{kinds.Reversed},
	StaleAnswer:         FaultKind{kinds.StaleAnswer},
	Outage:              FaultKind{kinds.Outage},

	WebhookUnreachable:    FaultKind{kinds.WebhookUnreachable},
	WebhookPassedOver:     FaultKind{kinds.WebhookPassedOver},
	ConversionUnreachable: FaultKind{kinds.ConversionUnreachable},
}

// Fault is one thing that goes wrong at one point of a run.
type Fault struct {
	Kind FaultKind // what goes wrong
	At   string    // the request, as [Request.String] returns it, the change of an object, or its deletion by the user
	Nth  int       // its number among the requests or changes of that name; 1 is the first
}

// String returns the fault in the form that [Options.Replay] accepts, such as "crash after: create Deployment default/web #1".
func (f Fault) String() string { return f.planned().String() }

// planned returns the fault in the engine's type.
func (f Fault) planned() plan.Fault { return plan.Fault{Kind: f.Kind.kind, At: f.At, Nth: f.Nth} }

// faultsOf returns the engine's faults in this package's type.
func faultsOf(faults []plan.Fault) []Fault {
	var all []Fault
	for _, f := range faults {
		all = append(all, Fault{Kind: FaultKind{f.Kind}, At: f.At, Nth: f.Nth})
	}
	return all
}

func formatFaults(faults []Fault) string {
	all := make([]plan.Fault, len(faults))
	for i, f := range faults {
		all[i] = f.planned()
	}
	return plan.FormatFaults(all)
}
