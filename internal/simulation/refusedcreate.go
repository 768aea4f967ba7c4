package simulation

import (
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// noteRefusedCreates inserts a finding if the operator takes "already exists" for a success in the run without faults, though the object that exists
// differs from what it has sent. A comparison of runs cannot find that: the object stays the same in all of them.
func (e *explorer) noteRefusedCreates() {
	refused := e.baseline.Refused
	switch {
	case len(refused) == 0:
		return
	case e.isSilent(kinds.DoesNotSucceed):
		e.baseline.Silenced[kinds.DoesNotSucceed] = true
		return
	}
	err := fmt.Errorf("a create that is refused is taken for a success. The answer is \"already exists\", and the pass returns no error:\n  %s\n"+
		"Apply the object, or read it and update what differs; if it belongs to somebody else, return an error. If these fields are meant for a new object only, leave them out by Ignore",
		strings.Join(refused, "\n  "))
	request, _, _ := strings.Cut(refused[0], ",")
	e.found.insert(Failure{Kind: kinds.DoesNotSucceed, Err: err, Cause: "a refused create is taken for a success", shown: true, Trace: e.baseline.Trace.LastPassWith(request), trace: e.baseline.Trace})
}
