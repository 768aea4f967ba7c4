package external

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile"
)

// apply creates what is missing, and updates what differs.
func (p *pass[T, S]) apply(ctx context.Context, found []*candidate[S], desired S) error {
	p.confirm(found)
	version := p.record.Version // of what was found
	if !slices.ContainsFunc(found, func(f *candidate[S]) bool { return !f.missing }) {
		version = p.version
	}
	later, err := p.createAll(ctx, found, desired)
	if err != nil {
		return err
	}
	if p.record.Version = version; later != nil {
		return later
	}
	for _, f := range found {
		isOutdated := f.wasFaster || version != p.version && !f.missing
		if f.observed == nil || !isOutdated && !p.Differs(*f.observed, desired) {
			continue
		}
		if err := p.update(ctx, f, desired); err != nil {
			return err
		}
	}
	p.record.Version = p.version
	return nil
}

// confirm records what was found. If it is not known which version it has, no version is recorded until all is updated.
func (p *pass[T, S]) confirm(found []*candidate[S]) {
	for _, f := range found {
		if f.missing {
			continue
		}
		if f.foreign || p.wasFormer(f.key) {
			p.record.Version = ""
		}
		ref, _ := p.get(f.key)
		ref.Pending = false
		p.set(ref)
	}
}

// update changes a thing.
func (p *pass[T, S]) update(ctx context.Context, f *candidate[S], desired S) error {
	if err := p.checkpoint(ctx); err != nil {
		return err
	}
	ref, _ := p.get(f.key)
	err := p.call(ctx, func(ctx context.Context) error { return p.Update(ctx, p.obj, ref, *f.observed, desired) })
	if err != nil {
		return err
	}
	return p.lookAgain(ctx, f)
}

// lookAgain observes what was changed just now, if somebody wants to know what the API has made of it.
func (p *pass[T, S]) lookAgain(ctx context.Context, f *candidate[S]) error {
	if p.Observed == nil && p.Ready == nil {
		return nil
	}
	ref, _ := p.get(f.key)
	observed, err := p.observe(ctx, ref)
	if err == nil {
		f.observed = &observed
	}
	return err
}

// createAll creates what is missing. The status records all of it before the first creation. later is the wait for the API to show what was
// created.
func (p *pass[T, S]) createAll(ctx context.Context, found []*candidate[S], desired S) (later, err error) {
	wasPending := map[string]bool{} // by the keys that are to be created
	for _, f := range found {
		if !f.missing {
			continue
		}
		pending, err := p.prepare(f.key)
		switch _, isLate := errors.AsType[*creatingError](err); {
		case isLate:
			later = err
		case err != nil:
			return nil, err
		default:
			wasPending[f.key] = pending
		}
	}
	for _, f := range found {
		pending, isPrepared := wasPending[f.key]
		if !isPrepared {
			continue
		}
		err := p.create(ctx, f, pending, desired)
		if _, isLate := errors.AsType[*creatingError](err); isLate {
			later = err
		} else if err != nil {
			return nil, err
		}
	}
	return later, nil
}

// prepare records a thing that is about to be created. It returns an error if a creation may have had an effect that the API does not show
// yet.
func (p *pass[T, S]) prepare(key string) (wasPending bool, err error) {
	ref, recorded := p.get(key)
	wasPending = recorded && ref.Pending
	switch now := p.Clock.Now(); {
	case wasPending && ref.ID == "" && p.Identity == ByID:
		return wasPending, p.unknown(ref)
	case ref.Since != nil && now.Before(ref.Since.Add(p.Grace)):
		return wasPending, &creatingError{ref, ref.Since.Add(p.Grace).Sub(now)}
	case !wasPending || ref.ID != "": // the one before is gone
		ref = Reference{Key: key, Pending: true, Since: new(metav1.NewTime(now))}
		if p.Identity == ByToken {
			ref.Token = rand.Text()
		}
		p.set(ref)
	}
	p.record.Version = "" // until the API has answered
	return wasPending, nil
}

// create creates a thing that the status records.
func (p *pass[T, S]) create(ctx context.Context, f *candidate[S], wasPending bool, desired S) error {
	if err := p.checkpoint(ctx); err != nil {
		return err
	}
	ref, _ := p.get(f.key)
	var id string
	err := p.call(ctx, func(ctx context.Context) (err error) {
		id, err = p.Create(ctx, p.obj, ref, desired)
		return err
	})
	switch {
	case errors.Is(err, ErrExists):
		return p.existsAlready(ctx, f, wasPending)
	case err != nil:
		if isRefused(err) && !wasPending {
			p.remove(f.key)
		}
		return err
	}
	ref.ID, ref.Pending = id, p.Grace > 0
	if p.set(ref); ref.Pending {
		return &creatingError{ref, min(p.Grace, firstLook)}
	}
	return p.lookAgain(ctx, f)
}

// existsAlready is for a key that was taken between the observation and the creation: by an earlier creation of ours, whose record was
// pending, or by somebody else.
func (p *pass[T, S]) existsAlready(ctx context.Context, f *candidate[S], wasPending bool) error {
	ref, _ := p.get(f.key)
	observed, err := p.observe(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return reconcile.Wait(ReasonCreating, firstLook, "the API answers that %s exists, and does not show it", ref)
	}
	if err != nil {
		return err
	}
	f.observed, f.wasFaster = &observed, p.version != ""
	if !wasPending && p.IsOurs == nil || !p.isOurs(ref, observed) {
		if err := p.adopt(f); err != nil {
			return err
		}
		p.remove(f.key)
		return reconcile.Wait(ReasonExists, firstLook, "%s was created by somebody else just now", f.key) // it has yet to be admitted
	}
	ref.Pending = false
	p.set(ref)
	return nil
}

// creatingError is the wait for the API to show what was created.
type creatingError struct {
	ref   Reference
	after time.Duration
}

func (e *creatingError) Error() string {
	return e.ref.String() + " was created, and the API does not show it yet"
}

// Waiting implements [reconcile.Waiter].
func (e *creatingError) Waiting() (reason string, after time.Duration) {
	return ReasonCreating, e.after
}

func (p *pass[T, S]) unknown(ref Reference) error {
	return reconcile.Stalled(ReasonUnknown, fmt.Errorf("the answer to the creation of %s was lost, so it may exist: it is not created again; "+
		"look for it in the API, and write its ID into the status, or remove pending from the status if it does not exist", ref))
}
