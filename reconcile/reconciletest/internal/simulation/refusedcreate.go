package simulation

import (
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// noteRefusedCreates inserts a finding if the operator takes "already exists" for a success in the run without faults, though the object
// that exists differs from what it has sent. A comparison of runs cannot find that: the object stays the same in all of them.
func (e *explorer) noteRefusedCreates() {
	refused := e.baseline.Refused
	if len(refused) == 0 {
		return
	}
	var lines []string
	for _, r := range refused {
		lines = append(lines, fmt.Sprintf("%s, and the object that exists has other values there: %s", r.Request, strings.Join(r.Fields, ", ")))
	}
	e.note(Failure{
		Kind: kinds.DoesNotSucceed, Cause: "a refused create is taken for a success", Trace: e.baseline.Trace.LastPassWith(refused[0].Request), trace: e.baseline.Trace,
		Err: fmt.Errorf("a create that is refused is taken for a success. The answer is \"already exists\", and the pass returns no error:\n  %s\n"+
			"Apply the object, or read it and update what differs; if it belongs to somebody else, return an error. If these fields are meant for a new object only, leave them out by Ignore",
			strings.Join(lines, "\n  ")),
	})
}
