package reconcile

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// left is what a step has left for the end of the pass.
type left struct {
	step int
	do   func(ctx context.Context) error
}

// AfterSteps implements [passcontext.Pass].
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
	for i := range outcomes {
		if !slices.ContainsFunc(p.left, func(l left) bool { return l.step == i }) {
			continue
		}
		o := p.call(ctx, i, func(ctx context.Context, _ client.Client, _ T) error { return p.doLeft(ctx, i) })
		if o.state != succeeded {
			outcomes[i] = o
		}
	}
}

// doLeft does what a step has left, and what that leaves.
func (p *pass[T]) doLeft(ctx context.Context, step int) error {
	var errs []error
	for i := 0; i < len(p.left); i++ {
		if p.left[i].step == step {
			errs = append(errs, p.left[i].do(ctx))
		}
	}
	return errors.Join(errs...)
}
