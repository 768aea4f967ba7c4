package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/preview"
	"github.com/opblocks/opblocks/reconcile"
)

// Preview says what Reconcile of obj would do outside of the cluster, for the plan of an upgrade (package upgrade). It names the things, and no
// field of them. It changes nothing, and calls the API only with [Resource.ObserveInPlans]. It changes the record of obj in memory.
func (s *Step[T, S]) Preview(ctx context.Context, c client.Client, obj T) ([]preview.Change, error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	p := planning[T, S]{s.pass(c, obj)}
	p.visit.gate, p.visit.urgent = &s.plans, true
	if err := p.setWanted(ctx); err != nil {
		return []preview.Change{p.refused(Reference{Key: p.key}, err)}, nil
	}
	if !p.observesOnly() {
		p.changeKey()
	}
	changes := []preview.Change{p.present(ctx)}
	if p.retains() {
		return changes, nil
	}
	for _, ref := range p.record.Former {
		former := p.change(ref, preview.Delete)
		former.Effects = []string{"it is deleted outside of the cluster, with what it holds"}
		former.After = p.reference().String() + " is there"
		changes = append(changes, former)
	}
	return changes, nil
}

// planning is a pass that only says what it would do.
type planning[T client.Object, S any] struct{ *pass[T, S] }

func (p planning[T, S]) change(ref Reference, action preview.Action) preview.Change {
	kind := cmp.Or(p.name, "thing outside of the cluster")
	return preview.Change{Kind: schema.GroupKind{Kind: kind}, Name: types.NamespacedName{Name: ref.String()}, Action: action}
}

// refused returns the change for a pass that would end with an error. The plan takes errors of the network for errors of the API server, so
// only the text of the error is kept.
func (p planning[T, S]) refused(ref Reference, err error) preview.Change {
	c := p.change(ref, "")
	if wait, ok := errors.AsType[reconcile.Waiter](err); ok {
		c.Waits = wait.Error()
		return c
	}
	c.Err = errors.New(err.Error())
	return c
}

// present says what would be done to the thing under the present key.
func (p planning[T, S]) present(ctx context.Context) preview.Change {
	r, ref := p.record, p.reference()
	switch {
	case p.ObserveInPlans:
		return p.compared(ctx)
	case p.observesOnly():
		return p.change(ref, preview.None)
	case r.Pending:
		return p.refused(ref, fmt.Errorf("whether %s was created is not known before it is observed", ref))
	case r.isEmpty() && p.mayCreate():
		c := p.change(ref, preview.Create)
		c.Note = "unless it exists: the plan has not asked"
		return c
	case r.isEmpty():
		return p.change(ref, preview.Compare)
	case !p.mayUpdate():
		return p.change(ref, preview.None)
	case r.Version != p.version:
		return p.change(ref, preview.Apply)
	}
	return p.change(ref, preview.Compare)
}

// compared observes the thing, and says what would be done to it.
func (p planning[T, S]) compared(ctx context.Context) (c preview.Change) {
	ref := p.reference()
	desired, err := p.desired(ctx)
	if err != nil {
		return p.refused(ref, err)
	}
	if p.Quota != nil {
		if err := p.Quota.Wait(ctx); err != nil {
			return p.refused(ref, err)
		}
	}
	var observed S
	err = p.atServer(ctx, func(ctx context.Context) (err error) {
		observed, err = p.observe(ctx, ref)
		return err
	})
	isMissing := errors.Is(err, ErrNotFound)
	switch {
	case err != nil && !isMissing:
		return p.refused(ref, err)
	case isMissing:
		return p.missing(ref)
	case p.observesOnly():
		return p.change(ref, preview.None)
	}
	if err := p.acquire(observed); err != nil {
		return p.refused(ref, err)
	}
	if p.mayUpdate() && (p.record.Version != p.version || p.Differs(observed, desired)) {
		return p.change(ref, preview.Apply)
	}
	return p.change(ref, preview.None)
}

// missing says what would be done about a thing that was not found.
func (p planning[T, S]) missing(ref Reference) preview.Change {
	switch {
	case !p.mayCreate():
		return p.refused(ref, reconcile.Wait(ReasonNotFound, p.Every, "%s does not exist, and is not to be created", ref))
	case ref.Pending && ref.ID == "" && p.Identity == ByID:
		return p.refused(ref, p.unknown(ref))
	}
	return p.change(ref, preview.Create)
}
