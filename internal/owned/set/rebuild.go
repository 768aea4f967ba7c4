package set

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// checkPurity builds the children although nothing has changed for the owner. If they differ from what was applied last, it returns an
// error: a function that builds them depends on something else than the owner and the inputs.
func (s *Set) checkPurity(ctx context.Context, c client.Client, obj client.Object, children []childindex.Name, last *settledMore) error {
	obj = obj.DeepCopyObject().(client.Object) // the object may be in the cache's memory
	r, err := newReconciliation(passcontext.WithoutFaults(ctx), s, c, obj, toLook)
	if err != nil {
		return err
	}
	for i, served := range last.served {
		r.States[i].Served = served
	}
	for _, i := range s.order.Sequence {
		if r.build(i); readsOthers(r, last.reads) {
			return nil // an object that an input reads has changed after all, and the cache has shown that only now
		}
		if err := errors.Join(r.failures...); err != nil || len(r.waits) > 0 {
			return impure(s.Children[i].Describe(), "it cannot be built any more", errors.Join(err, owned.JoinWaits(r.waits)))
		}
		for j := r.States[i].from; j < r.States[i].to; j++ {
			if err := compareWithApplied(r, &r.objects[j]); err != nil {
				return err
			}
		}
	}
	if len(r.objects) != len(children) {
		return impure(r.owner.String(), fmt.Sprintf("it has %d children instead of %d", len(r.objects), len(children)), nil)
	}
	return nil
}

// readsOthers reports whether an input has read other objects or other versions than before.
func readsOthers(r *Reconciliation, before []owned.ReadVersion) bool {
	for _, result := range r.inputs {
		if slices.ContainsFunc(result.reads, func(read owned.ReadVersion) bool { return !slices.Contains(before, read) }) {
			return true
		}
	}
	return false
}

// compareWithApplied returns an error if a desired object differs from what was applied last.
func compareWithApplied(r *Reconciliation, d *owned.Declared) error {
	live, _, err := r.Set.Applier.Read(r.ctx, r.owner, d.Kind, d.Object)
	if err != nil {
		return err
	}
	if live == nil {
		return impure(d.Kind.Describe(d.Object), "an object of this name was not there before", nil)
	}
	d.Live = live
	desired, err := r.Set.Applier.Desire(r.owner, d.Object, d.Options)
	if err != nil {
		return err
	}
	if record.LastAppliedOf(live).Hash != string(desired.Sum[:]) {
		return impure(d.Kind.Describe(d.Object), "it is built in another way", nil)
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

// Builds reports whether a set builds an object of this kind and name for an owner. It calls the functions that build objects of that kind,
// and changes nothing. If it is not certain, it reports false: an object that an input reads may be missing, a child may be built from a
// live one, or a function may panic. The reconcile of that owner reports the panic.
func Builds(ctx context.Context, s *Set, c client.Client, obj client.Object, kind schema.GroupKind, name types.NamespacedName) (builds bool) {
	defer func() { builds = recover() == nil && builds }()
	kinds, err := s.KindsIn(c.Scheme())
	if s.err() != nil || err != nil {
		return false
	}
	var r *Reconciliation
	for i, child := range s.Children {
		if kinds[i].GVK.GroupKind() != kind || child.liveInput() != nil {
			continue
		}
		if r == nil {
			ctx = passcontext.NewContext(passcontext.WithoutFaults(ctx), nil) // nothing that happens here is a part of the current reconcile
			if r, err = newReconciliation(ctx, s, c, obj.DeepCopyObject().(client.Object), toLook); err != nil {
				return false
			}
			if s.ifServed {
				defer r.acquireServed()()
			}
		}
		r.build(i)
		for j := r.States[i].from; j < r.States[i].to; j++ {
			if client.ObjectKeyFromObject(r.objects[j].Object) == name {
				return true
			}
		}
	}
	return false
}
