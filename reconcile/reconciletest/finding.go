package reconciletest

import "github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"

// FindingKind is a kind of finding. Its values are the fields of [Findings].
type FindingKind struct{ kind kinds.Finding }

// String returns the kind as reports print it, such as "does not survive".
func (k FindingKind) String() string { return string(k.kind) }

// Findings has the kinds of findings.
var Findings = struct {
	// DoesNotSurvive: after a fault something is wrong that is right without it, or harm was done.
	DoesNotSurvive FindingKind
	// DoesNotSucceed: without any fault a step or a pass has never succeeded, or has failed in the end, or no pass was made. Or the
	// operator takes a refused create for a success, though the object that exists differs from what was sent.
	DoesNotSucceed FindingKind
	// DoesNotRest: the operator goes on working although nothing has changed, or does not become quiet. Or a pass does not find an object
	// in the cache, because the options of the cache leave it out.
	DoesNotRest FindingKind
	// LeaksSecret: a value of a Secret appears in an object of another kind, in an event, or in a log line.
	LeaksSecret FindingKind
	// CreatesDuplicate: the operator has created the same thing twice for one object in an API of package fakeapi.
	CreatesDuplicate FindingKind
	// ChangesForeign: the operator changes or deletes a thing of another owner in an API of package fakeapi. Or it writes one and the same
	// object in turn for two owners that have the same name in two namespaces.
	ChangesForeign FindingKind
	// LeavesOutside: everything that the user created is deleted, and something is left outside of the cluster.
	LeavesOutside FindingKind
	// LeavesEntry: everything that the user created is deleted, and the operator leaves an entry in an object that it has not created,
	// such as a key of a shared ConfigMap or a finalizer.
	LeavesEntry FindingKind
	// DependsOnTiming: the operator leads to one state without faults, to another one if it starts only after the user's actions, and to a
	// third one in this run. Nobody knows which of them is wrong.
	DependsOnTiming FindingKind
	// BreaksConvention: a pass returns both a delay and an error. Or a pass that has nothing to do sends a write that changes nothing. Or a
	// goroutine that the process has started only once still runs after the process has ended.
	BreaksConvention FindingKind
}{
	DoesNotSurvive:   FindingKind{kinds.DoesNotSurvive},
	DoesNotSucceed:   FindingKind{kinds.DoesNotSucceed},
	DoesNotRest:      FindingKind{kinds.DoesNotRest},
	LeaksSecret:      FindingKind{kinds.LeaksSecret},
	CreatesDuplicate: FindingKind{kinds.CreatesDuplicate},
	ChangesForeign:   FindingKind{kinds.ChangesForeign},
	LeavesOutside:    FindingKind{kinds.LeavesOutside},
	LeavesEntry:      FindingKind{kinds.LeavesEntry},
	DependsOnTiming:  FindingKind{kinds.DependsOnTiming},
	BreaksConvention: FindingKind{kinds.BreaksConvention},
}
