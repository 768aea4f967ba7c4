package reconcile

import (
	"context"
	"errors"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// Checkpoint writes what a step has changed in the object's status so far, before it does
// something outside of the cluster that this status tells about: after a crash in between, the
// next pass knows. It is the one exception to a single status request a pass, and sends none if
// nothing has changed.
//
// Call it in a step, with the step's context, and do nothing outside if it gives an error. A
// conflict among them is retried quietly when the step returns it.
func Checkpoint(ctx context.Context) error {
	p, ok := passcontext.Of(ctx).(interface {
		checkpoint(ctx context.Context) error
	})
	if !ok {
		return errors.New("checkpoint outside of a pass: call it in a step, with the context that the step was given")
	}
	return p.checkpoint(ctx)
}

func (p *pass[T]) checkpoint(ctx context.Context) error {
	if p.status.status < 0 {
		return errors.New("checkpoint of a kind whose status is not written")
	}
	p.status.fill(p.obj)
	if p.status.equal(p.before, p.obj) {
		return nil
	}
	err := p.write(ctx, true)
	p.locked = p.locked || err != nil
	return err
}
