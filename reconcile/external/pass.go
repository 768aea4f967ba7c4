package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// pass is the reconcile of one object.
type pass[T client.Object, S any] struct {
	resource *Resource[T, S]
	obj      T
	outside  outside[T, S]
	ledger   ledger[T, S]
	claimant claimant[T, S]
	wanted   wanted
	secrets  *publisher[T]
	behind   bool // the API may still show an old state
	round    *round[S]
}

func (p *pass[T, S]) search() search[T, S] {
	return search[T, S]{p.resource, &p.outside, &p.ledger, &p.wanted}
}

func (p *pass[T, S]) publishing() publishing[T, S] {
	return publishing[T, S]{p.secrets, p.resource, &p.outside, &p.ledger, &p.wanted}
}

func (p *pass[T, S]) dropper() dropper[T, S] {
	return dropper[T, S]{p.resource, &p.outside, &p.ledger, &p.claimant, p.wanted.retains()}
}

// setWanted sets the desired keys and the desired version.
func (p *pass[T, S]) setWanted(ctx context.Context) (err error) {
	if p.ledger.keys = p.resource.keysOf(p.obj); slices.Contains(p.ledger.keys, "") && p.resource.Identity == ByKey {
		return reconcile.Stalled(reasonInvalidKey, errors.New("the key is empty"))
	}
	p.behind = p.ledger.takeBack()
	if p.resource.Version != nil && len(p.ledger.keys) > 0 {
		p.wanted.version, err = p.resource.Version(ctx, p.outside.client, p.obj)
	}
	return err
}

// present returns the present desired state, as it is stored in memory after a successful pass.
func (p *pass[T, S]) present() synced {
	return synced{uid: p.obj.GetUID(), generation: p.obj.GetGeneration(), version: p.wanted.version, policy: p.wanted.policy}
}

// isAsAfter reports whether nothing has changed since the last successful pass: neither the desired state nor the
// record.
func (p *pass[T, S]) isAsAfter(last synced) bool {
	isCurrent := p.ledger.areConfirmed() && !p.ledger.record.isIssuing() && !p.wanted.isOutdated(p.ledger.record)
	last.at, last.behind = time.Time{}, false
	return last == p.present() && (isCurrent || p.wanted.observesOnly())
}

// isChanged reports whether a person has changed the desired state, or a thing still has to be created. A pass without
// such a change is a poll.
func (p *pass[T, S]) isChanged() bool {
	return p.ledger.record.Generation != p.obj.GetGeneration() || p.wanted.mayCreate() && slices.ContainsFunc(p.ledger.keys, p.ledger.isMissing) ||
		p.wanted.isOutdated(p.ledger.record)
}

// success returns the outcome of a pass after which all things are as desired. The next pass is a poll.
func (p *pass[T, S]) success(after time.Duration) error {
	reason, message := "", p.ledger.names(p.ledger.keys)+" is as desired"
	switch {
	case len(p.ledger.keys) == 0:
		message = "nothing is desired"
	case p.resource.Succeeded != nil:
		reason, message = p.resource.Succeeded(p.obj)
	case p.wanted.observesOnly():
		message = p.ledger.names(p.ledger.keys) + " is observed, and not changed"
	case !p.wanted.mayUpdate():
		message = p.ledger.names(p.ledger.keys) + " exists, and is not changed"
	}
	if p.wanted.invalidEvery {
		reason = reasonInvalidInterval
		message += fmt.Sprintf("; the annotation %s is not a duration such as 30m or 2h, so it is observed every %v", IntervalAnnotation, p.wanted.every)
	}
	return reconcile.LowPriority(reconcile.Success(reason, after, "%s", message))
}

// sync creates, updates and deletes things until all are as desired.
func (p *pass[T, S]) sync(ctx context.Context) error {
	if p.wanted.observesOnly() {
		return p.look(ctx)
	}
	if err := p.claim(ctx); err != nil { // comes before Desired, which may send a request: many objects may wait for one key
		return err
	}
	var desired S
	if len(p.ledger.keys) > 0 {
		var err error
		if desired, err = p.outside.desired(ctx); err != nil {
			return err
		}
	}
	for _, observed := range p.round.observed() { // the things that earlier passes observed, because each pass has a new copy of the object
		p.outside.tell(observed)
	}
	later, err := p.dropper().settle(ctx)
	if err != nil {
		return err
	}
	found, rest, err := p.search().find(ctx, p.round.open(), desired, later)
	if err != nil {
		return err
	}
	if p.resource.Recreate {
		if err := p.dropper().dropFormer(ctx); err != nil {
			return err
		}
	}
	a := applier[T, S]{
		resource: p.resource, outside: &p.outside, ledger: &p.ledger, wanted: &p.wanted,
		found: found, desired: desired, isPart: rest != nil, behind: p.behind,
	}
	err = a.apply(ctx)
	if p.behind = a.behind; err != nil {
		return err
	}
	if p.round.mark(found...); rest != nil {
		return rest
	}
	if err := p.publishing().publish(ctx); err != nil {
		return err
	}
	if len(p.ledger.former()) > 0 {
		if err := p.dropper().dropFormer(ctx); err != nil {
			return err
		}
		if err := p.ledger.letGo(ctx); err != nil {
			return err
		}
	}
	return p.ready(desired)
}

// look observes the things, and changes nothing.
func (p *pass[T, S]) look(ctx context.Context) error {
	for _, observed := range p.round.observed() { // the things that earlier passes observed, because each pass has a new copy of the object
		p.outside.tell(observed)
	}
	for i, key := range p.round.open() {
		if err := p.outside.visit.Next(ctx, i == 0); err != nil {
			return err
		}
		ref, _ := p.ledger.get(key)
		observed, err := p.outside.observe(ctx, ref)
		switch {
		case errors.Is(err, ErrNotFound):
			return notFound(ref, p.wanted.every)
		case err != nil:
			return err
		}
		p.outside.tell(observed)
		p.round.mark(&candidate[S]{key: key, observed: &observed})
	}
	if err := p.publishing().publish(ctx); err != nil {
		return err
	}
	var none S
	return p.ready(none)
}

// ready calls Ready for each thing. It returns the error of the first thing that is not ready.
func (p *pass[T, S]) ready(desired S) (first error) {
	for _, key := range p.ledger.keys {
		f := p.round.done[key]
		if p.resource.Ready == nil || f.observed == nil {
			continue
		}
		if err := p.resource.Ready(p.obj, *f.observed, desired); first == nil {
			first = err
		}
	}
	return first
}
