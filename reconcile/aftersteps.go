package reconcile

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// AfterSteps leaves something for the end of the pass that the context is of: it is done after
// all steps have run, and only if none failed or was skipped. Deleting belongs there, so that what
// moves from one step to another is not deleted in between. Its error is the step's outcome.
func AfterSteps(ctx context.Context, do func(ctx context.Context) error) error {
	p, ok := passcontext.Of(ctx).(interface {
		AfterSteps(do func(ctx context.Context) error)
	})
	if !ok {
		return errors.New("AfterSteps outside of a pass: call it in a step, with the context that the step was given")
	}
	p.AfterSteps(do)
	return nil
}

// left is what a step has left for the end of the pass.
type left struct {
	step int
	do   func(ctx context.Context) error
}

// AfterSteps is for steps in packages that know the pass by its context alone.
func (p *pass[T]) AfterSteps(do func(ctx context.Context) error) {
	p.left = append(p.left, left{p.running, do})
}

// afterSteps does what was left, unless a step failed or was skipped.
func (p *pass[T]) afterSteps(ctx context.Context, outcomes []outcome) {
	for _, o := range outcomes {
		if o.state != succeeded && o.state != waiting {
			return
		}
	}
	for _, l := range p.left {
		o := p.call(ctx, l.step, func(ctx context.Context, _ client.Client, _ T) error { return l.do(ctx) })
		if o.state != succeeded {
			outcomes[l.step] = o
		}
	}
}
