package reconcile

import (
	"context"
	"fmt"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// reportEnd tells an exploration how the pass has ended. Without outcomes no step was due: the object is paused, filtered out or cleaned up.
// The value of a panic stays within the test: it may be secret.
func (p *pass[T]) reportEnd(ctx context.Context, outcomes []outcome) {
	report := passcontext.PassEnds(ctx)
	if report == nil {
		return
	}
	end := passcontext.PassEnd{Kind: p.kind, UID: p.before.GetUID(), Cleanup: p.before.GetDeletionTimestamp() != nil}
	for i := range outcomes {
		o := &outcomes[i]
		step := passcontext.StepEnd{Step: o.step.name, State: o.state.String(), Reason: o.reason, Message: o.message}
		if o.panicked != nil {
			step.Message = fmt.Sprintf("%s: %v", o.message, o.panicked)
		}
		end.Steps = append(end.Steps, step)
	}
	report(end)
}
