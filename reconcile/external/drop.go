package external

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// dropper deletes things that the object does not want any more.
type dropper[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	claimant *claimant[T, S]
	retains  bool // things under former keys are kept
}

// dropFormer deletes the things under the object's former keys, one after the other.
func (d dropper[T, S]) dropFormer(ctx context.Context) error {
	for i, ref := range d.ledger.former() {
		if !d.retains {
			if err := d.drop(ctx, ref, i == 0); err != nil {
				return err
			}
		}
		d.ledger.remove(ref.Key)
	}
	return nil
}

// settle corrects the record of things under former keys: if a creation is recorded as pending, settle finds out whether the thing exists.
// It does not delete the things. dropFormer does that, usually only after the new things exist, which may take long. later is the error
// with which the step waits while the API may not show such a thing yet.
func (d dropper[T, S]) settle(ctx context.Context) (later, err error) {
	for _, ref := range d.ledger.former() {
		if !ref.Pending || d.outside.isLost(ref) {
			continue
		}
		switch observed, err := d.outside.observe(ctx, ref); {
		case errors.Is(err, ErrNotFound):
			if wait := d.awaitGrace(ref); wait != nil {
				later = wait
			} else {
				d.ledger.remove(ref.Key)
			}
		case err != nil:
			return nil, err
		case d.outside.isOurs(ref, observed):
			ref.Pending = false
			d.ledger.set(d.outside.withID(ref, observed))
		default:
			d.ledger.remove(ref.Key)
		}
	}
	return later, nil
}

// dropAll deletes all things of the object. If it succeeds, the record stays as it is, because the object is deleted
// next.
func (d dropper[T, S]) dropAll(ctx context.Context) (err error) {
	var dropped []string
	defer func() {
		if err != nil {
			for _, key := range dropped {
				d.ledger.remove(key)
			}
		}
	}()
	for i, ref := range d.ledger.all {
		if err := d.drop(ctx, ref, i == 0); err != nil {
			return err
		}
		dropped = append(dropped, ref.Key)
	}
	return nil
}

// drop deletes one thing, if it is ours. While the API still shows the thing, drop returns an error with which the step waits.
func (d dropper[T, S]) drop(ctx context.Context, ref Reference, isFirst bool) error {
	if d.resource.Identity == ByID && ref.ID == "" && !ref.Pending { // a person has removed pending from the status because the thing does not exist
		return nil
	}
	isShared, err := d.claimant.isShared(ctx, ref)
	if err != nil || isShared {
		return err
	}
	if err := d.outside.visit.Next(ctx, isFirst); err != nil {
		return err
	}
	if ref.Pending || d.outside.asks(ref) {
		if d.outside.isLost(ref) {
			return unknown(ref)
		}
		switch observed, err := d.outside.observe(ctx, ref); {
		case errors.Is(err, ErrNotFound) && d.isNew(ref): // the API may be behind, so it is deleted in any case
		case errors.Is(err, ErrNotFound):
			return d.awaitGrace(ref)
		case err != nil:
			return err
		case !d.outside.isOurs(ref, observed):
			return nil
		default:
			ref = d.outside.withID(ref, observed)
		}
	}
	if err := d.ledger.checkpoint(ctx); err != nil {
		return err
	}
	err = d.outside.delete(ctx, ref)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if d.resource.DeletesAtOnce {
		return nil
	}
	switch observed, err := d.outside.observe(ctx, ref); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case d.resource.Identity == ByKey && !d.outside.isOurs(ref, observed): // somebody else has created another thing since then
		return nil
	}
	return reconcile.Wait(reasonDeleting, firstLook, "%s is being deleted, and the API still shows it", ref)
}

// newFor is how long after its creation a thing is deleted even if the API does not show it. After that, a thing that the API does not show
// is gone. A thing that appears under its key later belongs to somebody else.
const newFor = time.Minute

// isNew reports whether a thing was created less than newFor ago.
func (d dropper[T, S]) isNew(ref Reference) bool {
	return !ref.Pending && ref.Since != nil && d.resource.Clock.Now().Before(ref.Since.Add(newFor))
}

// awaitGrace returns an error with which the step waits until Resource.Grace has passed since a creation. Before
// that, the API may not show the thing yet. Afterwards awaitGrace returns nil.
func (d dropper[T, S]) awaitGrace(ref Reference) error {
	if ref.Since == nil {
		return nil
	}
	if left := ref.Since.Add(d.resource.Grace).Sub(d.resource.Clock.Now()); left > 0 {
		return reconcile.Wait(reasonDeleting, left, "%s may have been created, and the API does not show it yet", ref)
	}
	return nil
}
