package ownedresources

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkPurity builds the children although they are settled. It returns an error if they are not as they were applied last:
// then a function that builds depends on something that is neither the owner nor an input.
func (s *ChildSet[T]) checkPurity(ctx context.Context, c client.Client, obj T, last *settledOwner) error {
	obj = obj.DeepCopyObject().(T) // it may be the cache's own
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set = s.name
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	r := &reconciliation[T]{set: s, ctx: ctx, client: c, owner: &o, object: s.withoutRecords(obj), kinds: kinds, states: make([]childState, len(s.children))}
	for i, served := range last.served {
		r.states[i].served = served
	}
	for _, i := range s.order.sequence {
		for _, in := range s.children[i].inputs {
			if !in.pure(r) {
				return errors.New(s.children[i].describe() + impureInput)
			}
		}
		r.build(i)
		if err := errors.Join(r.failures...); err != nil || len(r.waits) > 0 {
			return impure(s.children[i].describe(), "it cannot be built any more", errors.Join(err, joinWaits(r.waits)))
		}
		for j := r.states[i].from; j < r.states[i].to; j++ {
			if err := r.compareWithApplied(&r.objects[j]); err != nil {
				return err
			}
		}
	}
	if len(r.objects) != len(last.children) {
		return impure(o.String(), fmt.Sprintf("it has %d children instead of %d", len(r.objects), len(last.children)), nil)
	}
	return nil
}

// compareWithApplied returns an error if an object is not what was applied last.
func (r *reconciliation[T]) compareWithApplied(d *declared) error {
	live, _, err := r.set.applier.read(r.ctx, r.owner, d.kind, d.object)
	if err != nil {
		return err
	}
	if live == nil {
		return impure(d.kind.describe(d.object), "an object of this name was not there before", nil)
	}
	d.live = live
	desired, err := r.set.applier.desire(r.owner, d.object, d.options)
	if err != nil {
		return err
	}
	if lastAppliedOf(live).hash != string(desired.sum[:]) {
		return impure(d.kind.describe(d.object), "it is built in another way", nil)
	}
	return nil
}

const impureInput = ": its input has another value than it would have if it were read now, although neither the owner nor what it reads " +
	"has changed: the function of the input must depend on the owner's spec, labels and annotations and on what it reads only, and " +
	"nobody may change the value afterwards"

func impure(subject, difference string, err error) error {
	message := fmt.Sprintf("%s: %s, although neither the owner nor an input nor a child has changed: the function that builds it must "+
		"depend on the owner and on declared inputs only, not on the time, a random value, the order of a map or a global", subject, difference)
	if err == nil {
		return errors.New(message)
	}
	return fmt.Errorf("%s: %w", message, err)
}
