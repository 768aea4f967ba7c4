package reconciletest

import (
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// FindingKind is a kind of finding: "does not survive", "does not come to rest", "leaks a secret", "leaves something outside", "depends on
// timing" or "breaks a convention".
type FindingKind = kinds.Finding

// SkipFindings leaves out findings of some kinds: a run goes on after one, and is not a failure because of it. The report counts
// them. If the run without faults cannot go on, it is a failure in any case, since nothing else can be explored.
func SkipFindings(all ...FindingKind) Option {
	return func(s *settings) { s.silent = append(s.silent, all...) }
}

// EachAction holds each action to its own result: what a run without faults reaches after an action, the others must
// reach after the same one, and nothing more. By default, the operator may be further after an action that is not the
// last one: a value is right if the operator reaches it by itself, without faults, when the user waits after the
// action. A fault often makes the operator work for longer before the next action. While the user only waits, a value
// is also right if a run without faults has it at another moment of the same waits: time may let the operator work a
// little earlier or later. At the end of the waits, and of the scenario, everything must be done in any case.
func EachAction() Option { return func(s *settings) { s.strict = true } }
