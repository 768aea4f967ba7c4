package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Preview says what Reconcile of obj would do outside of the cluster, for the plan of an upgrade (package upgrade). It names the things, and no
// field of them. It changes nothing, and calls the API only with [Resource.ObserveInPlans].
func (s *Step[T, S]) Preview(ctx context.Context, c client.Client, obj T) (changes []preview.Change, err error) {
	if err := s.mistake(obj); err != nil {
		return nil, err
	}
	p := planning[T, S]{s.pass(c, obj)}
	p.visit = s.plans.Visit(obj, s.server(obj))
	p.visit.SetUrgent(true)
	if err := p.setWanted(ctx); err != nil {
		return []preview.Change{p.refused(Reference{Key: p.names(p.keys)}, err)}, nil
	}
	for _, key := range p.keys {
		changes = append(changes, p.present(ctx, key))
	}
	if p.retains() {
		return changes, nil
	}
	for _, ref := range p.former() {
		former := p.change(ref, forecast.Delete)
		former.Effects = []string{"it is deleted outside of the cluster, with what it holds"}
		if len(p.keys) > 0 {
			former.After = p.names(p.keys) + " is there"
		}
		changes = append(changes, former)
	}
	return changes, nil
}

// planning is a pass that only says what it would do.
type planning[T client.Object, S any] struct{ *pass[T, S] }

func (p planning[T, S]) change(ref Reference, action string) preview.Change {
	kind := cmp.Or(p.calls.Name(), "thing outside of the cluster")
	return preview.Change{Kind: schema.GroupKind{Kind: kind}, Name: types.NamespacedName{Name: ref.String()}, Action: action}
}

// refused returns the change for a pass that would end with an error. The plan takes errors of the network for errors of the API server, so
// only the text of the error is kept.
func (p planning[T, S]) refused(ref Reference, err error) preview.Change {
	c := p.change(ref, "")
	err = calls.WithoutQueries(err)
	if wait, ok := errors.AsType[reconcile.Waiter](err); ok {
		c.Waits = wait.Error()
		return c
	}
	c.Err = errors.New(err.Error())
	return c
}

// present says what would be done to the thing under a desired key.
func (p planning[T, S]) present(ctx context.Context, key string) preview.Change {
	ref, recorded := p.get(key)
	switch {
	case p.ObserveInPlans:
		return p.compared(ctx, ref)
	case p.observesOnly():
		return p.change(ref, forecast.None)
	case ref.Pending:
		return p.refused(ref, fmt.Errorf("whether %s was created is not known before it is observed", ref))
	case !recorded && p.mayCreate():
		c := p.change(ref, forecast.Create)
		c.Note = "unless it exists: the plan has not asked"
		return c
	case !recorded:
		return p.change(ref, forecast.Compare)
	case !p.mayUpdate():
		return p.change(ref, forecast.None)
	case p.record.Version != p.version:
		return p.change(ref, forecast.Apply)
	}
	return p.change(ref, forecast.Compare)
}

// compared observes the thing, and says what would be done to it.
func (p planning[T, S]) compared(ctx context.Context, ref Reference) preview.Change {
	var desired S
	if !p.observesOnly() {
		var err error
		if desired, err = p.Desired(ctx, p.client, p.obj); err != nil {
			return p.refused(ref, err)
		}
	}
	if p.Quota != nil {
		if err := p.Quota.Wait(ctx); err != nil {
			return p.refused(ref, err)
		}
	}
	var f *candidate[S]
	err := p.visit.Do(ctx, func(ctx context.Context) (err error) {
		if p.observesOnly() {
			_, err = p.observe(ctx, ref)
			return err
		}
		f, err = p.findOne(ctx, ref.Key)
		return err
	})
	switch {
	case p.observesOnly() && errors.Is(err, ErrNotFound):
		return p.refused(ref, p.notFound(ref))
	case err != nil:
		return p.refused(ref, err)
	case p.observesOnly():
		return p.change(ref, forecast.None)
	case f.missing && p.isUnknown(ref):
		return p.refused(ref, p.unknown(ref))
	case f.missing:
		return p.change(ref, forecast.Create)
	case p.mayUpdate() && (p.record.Version != p.version || p.Differs(ref, *f.observed, desired)):
		return p.change(ref, forecast.Apply)
	}
	return p.change(ref, forecast.None)
}
