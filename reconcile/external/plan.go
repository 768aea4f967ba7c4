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

// Preview returns what Reconcile would do outside of the cluster for obj, for the plan of an upgrade (package upgrade). The result names
// the things, and not their fields. It changes nothing, and calls the API only with [Resource.ObserveInPlans].
func (s *Step[T, S]) Preview(ctx context.Context, c client.Client, obj T) (changes []preview.Change, err error) {
	if err := s.mistake(obj); err != nil {
		return nil, err
	}
	of := s.pass(c, obj, s.plans)
	of.outside.visit.SetUrgent(true)
	p := planner[T, S]{kind: s.calls.Name(), search: of.search(), resource: of.resource, outside: &of.outside, ledger: &of.ledger, wanted: &of.wanted}
	if err := of.setWanted(ctx); err != nil {
		return []preview.Change{p.refused(Reference{Key: p.ledger.names(p.ledger.keys)}, err)}, nil
	}
	for _, key := range p.ledger.keys {
		changes = append(changes, p.present(ctx, key))
	}
	if p.wanted.retains() {
		return changes, nil
	}
	for _, ref := range p.ledger.former() {
		former := p.change(ref, forecast.Delete)
		former.Effects = []string{"it is deleted outside of the cluster, with what it holds"}
		if len(p.ledger.keys) > 0 {
			former.After = p.ledger.names(p.ledger.keys) + " is there"
		}
		changes = append(changes, former)
	}
	return changes, nil
}

// planner finds out what a pass would do.
type planner[T client.Object, S any] struct {
	kind     string // the name of the step
	search   search[T, S]
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted
}

func (p planner[T, S]) change(ref Reference, action string) preview.Change {
	kind := cmp.Or(p.kind, "thing outside of the cluster")
	return preview.Change{Kind: schema.GroupKind{Kind: kind}, Name: types.NamespacedName{Name: ref.String()}, Action: action}
}

// refused returns the change if the pass would end with an error. The change has only the text of the error. Otherwise the plan would
// mistake a network error of the external API for an error of the API server.
func (p planner[T, S]) refused(ref Reference, err error) preview.Change {
	c := p.change(ref, "")
	err = calls.WithoutQueries(err)
	if wait, ok := errors.AsType[reconcile.Waiter](err); ok {
		c.Waits = wait.Error()
		return c
	}
	c.Err = errors.New(err.Error())
	return c
}

// present returns what a pass would do to the thing under a desired key.
func (p planner[T, S]) present(ctx context.Context, key string) preview.Change {
	ref, recorded := p.ledger.get(key)
	switch {
	case p.resource.ObserveInPlans:
		return p.compared(ctx, ref)
	case p.wanted.observesOnly():
		return p.change(ref, forecast.None)
	case ref.Pending:
		return p.refused(ref, fmt.Errorf("whether %s was created is not known before it is observed", ref))
	case !recorded && p.wanted.mayCreate():
		c := p.change(ref, forecast.Create)
		c.Note = "unless it exists: the plan has not asked"
		return c
	case !recorded:
		return p.change(ref, forecast.Compare)
	case !p.wanted.mayUpdate():
		return p.change(ref, forecast.None)
	case p.wanted.isOutdated(p.ledger.record):
		return p.change(ref, forecast.Apply)
	}
	return p.change(ref, forecast.Compare)
}

// compared observes the thing, compares it with the desired state, and returns what a pass would do to it.
func (p planner[T, S]) compared(ctx context.Context, ref Reference) preview.Change {
	var desired S
	if !p.wanted.observesOnly() {
		var err error
		if desired, err = p.outside.desired(ctx); err != nil {
			return p.refused(ref, err)
		}
	}
	if p.resource.Quota != nil {
		if err := p.resource.Quota.Wait(ctx); err != nil {
			return p.refused(ref, err)
		}
	}
	var f *candidate[S]
	err := p.outside.visit.Do(ctx, func(ctx context.Context) (err error) {
		if p.wanted.observesOnly() {
			_, err = p.outside.observe(ctx, ref)
			return err
		}
		f, err = p.search.findOne(ctx, ref.Key)
		return err
	})
	switch {
	case p.wanted.observesOnly() && errors.Is(err, ErrNotFound):
		return p.refused(ref, notFound(ref, p.wanted.every))
	case err != nil:
		return p.refused(ref, err)
	case p.wanted.observesOnly():
		return p.change(ref, forecast.None)
	case f.missing && p.outside.isUnknown(ref):
		return p.refused(ref, unknown(ref))
	case f.missing:
		return p.change(ref, forecast.Create)
	case p.search.toUpdate(ref, *f.observed, desired):
		return p.change(ref, forecast.Apply)
	}
	return p.change(ref, forecast.None)
}
