package reconciletest

import (
	"slices"

	"github.com/opblocks/opblocks/internal/simulation"
)

// FindingKind is in which way an operator fails.
type FindingKind string

// The kinds of findings.
const (
	// DoesNotSurvive: after a fault something is wrong that is right without it, or harm was done.
	DoesNotSurvive FindingKind = "does not survive"
	// DoesNotRest: the operator works on although nothing has changed, does not become quiet, or ends in errors.
	// Or a pass does not find an object by its name in the cache, since the cache's options leave out the object, which exists, and
	// the pass does not read it past the cache.
	DoesNotRest FindingKind = "does not come to rest"
	// DependsOnTiming: the operator leads to one state without faults, to another one if it starts only after the user's
	// actions, and to a third one in this run. Either may be wrong, and none is blamed.
	DependsOnTiming FindingKind = "depends on timing"
	// BreaksConvention: a pass returns a delay beside an error, or one that has nothing to do sends a write that changes
	// nothing.
	BreaksConvention FindingKind = "breaks a convention"
)

// SkipFindings leaves out findings of some kinds: a run goes on after one, and is not a failure because of it. The report counts
// them. If the run without faults cannot go on, it is a failure in any case, since nothing else can be explored.
func SkipFindings(kinds ...FindingKind) Option {
	return func(s *settings) { s.silent = append(s.silent, kinds...) }
}

// EachAction holds each action to its own result: what a run without faults reaches after an action, the others must reach
// after the same one, and nothing more. By default, the operator may be further after an action that is not the last one: a value
// is right if the operator reaches it by itself, without faults, when the user waits after the action. A fault often makes the
// operator work for longer before the next action. While the user only waits, a value is also right if it is that of another
// moment of the same waits: time may let the operator work a little earlier or later. At the end of the waits, and of the
// scenario, everything must be done in any case.
func EachAction() Option { return func(s *settings) { s.strict = true } }

func isFindingKind(kind FindingKind) bool {
	return slices.Contains(simulation.FindingKinds(), simulation.FindingKind(kind))
}
