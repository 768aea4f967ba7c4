package kinds

// Finding is a way in which an operator fails, such as "does not survive".
type Finding string

// The kinds of findings.
const (
	// DoesNotSurvive: after a fault something is wrong that is right without it, or harm was done.
	DoesNotSurvive Finding = "does not survive"
	// DoesNotRest: the operator goes on working although nothing has changed, or does not become quiet. Or a pass does not find an object
	// in the cache by its name, because the cache's options leave it out, and the pass does not read the object from the API server either.
	DoesNotRest Finding = "does not come to rest"
	// DoesNotSucceed: without any fault a step or a pass has never succeeded, or has failed in the end, or no pass was made. Or the
	// operator takes a refused create for a success, though the object that exists differs from what was sent.
	DoesNotSucceed Finding = "does not succeed"
	// DependsOnTiming: the operator leads to one state without faults, to another one if it starts only after the user's actions, and to a
	// third one in this run. Nobody knows which of them is wrong.
	DependsOnTiming Finding = "depends on timing"
	// LeaksSecret: a value of a Secret appears in an object of another kind, in an event, or in a log line.
	LeaksSecret Finding = "leaks a secret"
	// LeavesOutside: in the run without faults everything that the user created is deleted, and something is left outside of the cluster
	// that was not there before. Or, in any run, something is left in an API of package fakeapi, and the objects to which it belonged are
	// deleted.
	LeavesOutside Finding = "leaves something outside"
	// LeavesEntry: in the run without faults everything that the user created is deleted, and the operator leaves an entry in an object
	// that it has not created, such as a key of a shared ConfigMap or a finalizer.
	LeavesEntry Finding = "leaves an entry behind"
	// CreatesDuplicate: the operator has created the same thing twice for one object in an API of package fakeapi, and both are there
	// when it is quiet.
	CreatesDuplicate Finding = "creates a duplicate"
	// ChangesForeign: the operator changes or deletes a thing of another owner in an API of package fakeapi. Or, without any fault, it
	// writes one and the same object in turn for two owners that have the same name in two namespaces.
	ChangesForeign Finding = "changes what is not its own"
	// BreaksConvention: a pass returns both a delay and an error. Or a pass that has nothing to do sends a write that changes nothing. Or a
	// goroutine that the process has started only once still runs after the process has ended.
	BreaksConvention Finding = "breaks a convention"
)

// Findings returns all kinds of findings.
func Findings() []Finding {
	return []Finding{DoesNotSurvive, DoesNotSucceed, DoesNotRest, LeaksSecret, CreatesDuplicate, ChangesForeign, LeavesOutside, LeavesEntry, DependsOnTiming, BreaksConvention}
}
