package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// checkPurity builds the children although the owner is settled. It returns an error if they are not as they were
// applied last: then a function that builds depends on something that is neither the owner nor an input.
func (s *set) checkPurity(ctx context.Context, c client.Client, obj client.Object, last *settledOwner) error {
	obj = obj.DeepCopyObject().(client.Object) // it may be the cache's own
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set = s.name
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	r := &reconciliation{
		set: s, ctx: passcontext.WithoutFaults(ctx), client: c, owner: &o, object: s.withoutRecords(obj), kinds: kinds,
		states: make([]childState, len(s.children)), readsAnew: true,
	}
	for i, served := range last.served {
		r.states[i].served = served
	}
	for _, i := range s.order.sequence {
		if r.build(i); r.readsOthers(last.reads) {
			return nil // an object has changed, and the cache does not show that yet
		}
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

// readsOthers reports whether an input has read another object than before, or another version.
func (r *reconciliation) readsOthers(before []readVersion) bool {
	for _, result := range r.inputs {
		if slices.ContainsFunc(result.reads, func(read readVersion) bool { return !slices.Contains(before, read) }) {
			return true
		}
	}
	return false
}

// compareWithApplied returns an error if an object is not what was applied last.
func (r *reconciliation) compareWithApplied(d *declared) error {
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
	if record.LastAppliedOf(live).Hash != string(desired.sum[:]) {
		return impure(d.kind.describe(d.object), "it is built in another way", nil)
	}
	return nil
}

func impure(subject, difference string, err error) error {
	message := fmt.Sprintf("%s: %s, although neither the owner, nor what an input reads, nor a child has changed: the functions that build it "+
		"and read its inputs must depend on the owner and on what they are given or read, not on the time, a random value, the order of a map or "+
		"a global, and nobody may change the value of an input afterwards", subject, difference)
	if err == nil {
		return errors.New(message)
	}
	return fmt.Errorf("%s: %w", message, err)
}
