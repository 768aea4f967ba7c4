package external

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// firstLook is the delay after which the step looks again at what the API has yet to show, or to remove.
const firstLook = 5 * time.Second

// dropping is the part of a pass that deletes.
type dropping[T client.Object, S any] struct{ *pass[T, S] }

// dropFormer deletes what the object had under former keys, one after the other.
func (p dropping[T, S]) dropFormer(ctx context.Context) error {
	for i, ref := range p.former() {
		if !p.retains() {
			if err := p.drop(ctx, ref, i == 0); err != nil {
				return err
			}
		}
		p.remove(ref.Key)
	}
	return nil
}

// settle finds out whether the former things that are recorded as pending exist. They are deleted only when the new ones are there,
// which may take long. later is the wait for the API to show what may have been created.
func (p dropping[T, S]) settle(ctx context.Context) (later, err error) {
	for _, ref := range p.former() {
		if !ref.Pending || p.isLost(ref) {
			continue
		}
		switch observed, err := p.observe(ctx, ref); {
		case errors.Is(err, ErrNotFound):
			if wait := p.awaitGrace(ref); wait != nil {
				later = wait
			} else {
				p.remove(ref.Key)
			}
		case err != nil:
			return nil, err
		case p.isOurs(ref, observed):
			ref.Pending = false
			p.set(p.withID(ref, observed))
		default:
			p.remove(ref.Key)
		}
	}
	return later, nil
}

// dropAll deletes what belongs to the object. While all of it goes, the record stays as it is: the object goes with it.
func (p dropping[T, S]) dropAll(ctx context.Context) (err error) {
	var dropped []string
	defer func() {
		if err != nil {
			for _, key := range dropped {
				p.remove(key)
			}
		}
	}()
	for i, ref := range p.all {
		if err := p.drop(ctx, ref, i == 0); err != nil {
			return err
		}
		dropped = append(dropped, ref.Key)
	}
	return nil
}

// drop deletes one thing, if it is ours, and returns a wait until the API does not show it any more.
func (p dropping[T, S]) drop(ctx context.Context, ref Reference, isFirst bool) error {
	if p.Identity == ByID && ref.ID == "" && !ref.Pending { // a person has said that it does not exist
		return nil
	}
	isShared, err := p.isShared(ctx, ref)
	if err != nil || isShared {
		return err
	}
	if err := p.visit.Next(ctx, isFirst); err != nil {
		return err
	}
	if ref.Pending || p.asks(ref) {
		if p.isLost(ref) {
			return p.unknown(ref)
		}
		switch observed, err := p.observe(ctx, ref); {
		case errors.Is(err, ErrNotFound) && p.isNew(ref): // it is deleted all the same: the API may be behind
		case errors.Is(err, ErrNotFound):
			return p.awaitGrace(ref)
		case err != nil:
			return err
		case !p.isOurs(ref, observed):
			return nil
		default:
			ref = p.withID(ref, observed)
		}
	}
	if err := p.checkpoint(ctx); err != nil {
		return err
	}
	err = p.call(ctx, calls.Delete, func(ctx context.Context) error { return p.Delete(ctx, p.client, p.obj, ref) })
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if p.DeletesAtOnce {
		return nil
	}
	switch observed, err := p.observe(ctx, ref); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case p.Identity == ByKey && !p.isOurs(ref, observed): // somebody else has created it since
		return nil
	}
	return reconcile.Wait(reasonDeleting, firstLook, "%s is being deleted, and the API still shows it", ref)
}

// isLost reports whether nothing tells if a creation has had an effect. Without [Resource.ID], Observe need not find things by their token.
func (p dropping[T, S]) isLost(ref Reference) bool {
	return p.isUnknown(ref) || ref.Pending && ref.ID == "" && p.Identity == ByToken && p.ID == nil
}

// newFor is how long after its creation something is deleted also if the API does not show it. Later it is gone, and what appears under its key is
// somebody else's.
const newFor = time.Minute

// isNew reports whether something was created a short time ago.
func (p dropping[T, S]) isNew(ref Reference) bool {
	return !ref.Pending && ref.Since != nil && p.Clock.Now().Before(ref.Since.Add(newFor))
}

// awaitGrace returns a wait while the API may not show yet what was created.
func (p dropping[T, S]) awaitGrace(ref Reference) error {
	if ref.Since == nil {
		return nil
	}
	if left := ref.Since.Add(p.Grace).Sub(p.Clock.Now()); left > 0 {
		return reconcile.Wait(reasonDeleting, left, "%s may have been created, and the API does not show it yet", ref)
	}
	return nil
}
