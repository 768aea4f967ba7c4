package external

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// pass is one pass over an object.
type pass[T client.Object, S any] struct {
	*Step[T, S]
	client       client.Client
	obj          T
	record       *Record // in the status of obj
	key, version string  // what is desired
	visit        visit
}

// isAsAfter reports whether the object is as it was after a pass that succeeded.
func (p *pass[T, S]) isAsAfter(last synced) bool {
	confirmed := !p.record.isEmpty() && !p.record.Pending && len(p.record.Former) == 0 && p.record.Key == p.key
	return last.generation == p.obj.GetGeneration() && last.version == p.version && (confirmed || p.observesOnly())
}

// isChanged reports whether a person has changed what is desired, or the thing has yet to be created. All other passes are polls.
func (p *pass[T, S]) isChanged() bool {
	r := p.record
	return r.Generation != p.obj.GetGeneration() || !p.observesOnly() && (r.isEmpty() || r.Pending || r.Version != p.version)
}

// atServer does what calls the API, if that is possible now.
func (p *pass[T, S]) atServer(ctx context.Context, do func(ctx context.Context) error) error {
	if err := p.visit.enter(); err != nil {
		return err
	}
	defer p.visit.leave()
	return do(ctx)
}

// call makes a call to the API, which ends after the timeout.
func (p *pass[T, S]) call(ctx context.Context, do func(ctx context.Context) error) error {
	if err := p.visit.take(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	err := do(limited)
	late := err != nil && limited.Err() != nil && ctx.Err() == nil
	if late {
		err = fmt.Errorf("no answer within %v: %w", p.Timeout, err)
	}
	return p.visit.note(err, late)
}

// success returns the message of the condition.
func (p *pass[T, S]) success() string {
	if p.observesOnly() {
		return Reference{Key: p.key, ID: p.record.ID}.String() + " is observed, and not changed"
	}
	return p.record.String() + " is as desired"
}

func (p *pass[T, S]) observesOnly() bool { return p.ObserveOnly != nil && p.ObserveOnly(p.obj) }

// retains reports whether nothing is deleted.
func (p *pass[T, S]) retains() bool {
	return p.observesOnly() || p.Retain != nil && p.Retain(p.obj)
}

// sync makes the thing as desired.
func (p *pass[T, S]) sync(ctx context.Context) error {
	desired, err := p.desired(ctx)
	if err != nil {
		return err
	}
	if !p.observesOnly() {
		p.changeKey()
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	observed, err := p.observe(ctx, p.reference())
	switch isFound := err == nil; {
	case isFound && p.observesOnly():
		return nil
	case isFound:
		if err := p.acquire(observed); err != nil {
			return err
		}
		if err := p.update(ctx, observed, desired); err != nil {
			return err
		}
	case !errors.Is(err, ErrNotFound):
		return err
	case p.observesOnly():
		return reconcile.Wait(ReasonNotFound, p.Every, "%s does not exist, and is only observed", p.reference())
	default:
		if err := p.create(ctx, desired); err != nil {
			return err
		}
	}
	return p.dropFormer(ctx)
}

func (p *pass[T, S]) desired(ctx context.Context) (desired S, err error) {
	if p.observesOnly() {
		return desired, nil
	}
	return p.Desired(ctx, p.client, p.obj)
}

// changeKey moves what was created under another key to the former ones. A former key that is desired again is taken back.
func (p *pass[T, S]) changeKey() {
	r := p.record
	if !r.isEmpty() && r.Key == p.key {
		return
	}
	former := slices.Clone(r.Former) // also if nothing was created under the key between the former one and this one
	if !r.isEmpty() {
		former = append(former, r.Reference)
	}
	*r = Record{Generation: r.Generation}
	for _, f := range former {
		if f.Key == p.key {
			r.Reference = f
			continue
		}
		r.Former = append(r.Former, f)
	}
}

// reference returns what to observe.
func (p *pass[T, S]) reference() Reference {
	if p.record.isEmpty() {
		return Reference{Key: p.key}
	}
	return p.record.Reference
}

// observe returns the state of a thing. If the API could not find it by what is recorded, it does not exist.
func (p *pass[T, S]) observe(ctx context.Context, ref Reference) (observed S, err error) {
	if ref.ID == "" && (p.Identity == ByID || p.Identity == ByToken && ref.Token == "") {
		return observed, ErrNotFound
	}
	err = p.call(ctx, func(ctx context.Context) (err error) {
		observed, err = p.Observe(ctx, p.client, p.obj, ref)
		return err
	})
	if err == nil && p.Observed != nil && ref.Key == p.key { // not of a former key
		p.Observed(p.obj, observed)
	}
	return observed, err
}

// acquire makes what was found ours, or returns an error if it belongs to somebody else.
func (p *pass[T, S]) acquire(observed S) error {
	r := p.record
	switch {
	case r.isEmpty() && p.Adopt != nil && p.Adopt(p.obj, observed):
		r.Key = p.key
	case r.isEmpty():
		return p.exists()
	case r.Pending && p.IsOurs != nil && !p.IsOurs(p.obj, r.Reference, observed):
		p.unrecord()
		return p.exists()
	}
	r.Pending = false
	return nil
}

// unrecord removes what is not ours from the record.
func (p *pass[T, S]) unrecord() {
	*p.record = Record{Former: p.record.Former, Generation: p.record.Generation}
}

func (p *pass[T, S]) exists() error {
	return reconcile.Stalled(ReasonExists, fmt.Errorf("%s exists and was not created for this object: it is left alone; choose another name, or delete it if nobody needs it", p.key))
}

// update changes the thing if it differs.
func (p *pass[T, S]) update(ctx context.Context, observed, desired S) error {
	if p.record.Version == p.version && !p.Differs(observed, desired) {
		return nil
	}
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	err := p.call(ctx, func(ctx context.Context) error { return p.Update(ctx, p.obj, p.record.Reference, observed, desired) })
	if err != nil {
		return err
	}
	p.record.Version = p.version
	return p.look(ctx)
}

// look observes what was changed just now, if somebody wants to know of what the API has made of it.
func (p *pass[T, S]) look(ctx context.Context) error {
	if p.Observed == nil {
		return nil
	}
	_, err := p.observe(ctx, p.record.Reference)
	return err
}

// create creates the thing, unless a creation may have had an effect that the API does not show yet. The status records it before.
func (p *pass[T, S]) create(ctx context.Context, desired S) error {
	r, now := p.record, p.Clock.Now()
	wasPending := r.Pending
	switch {
	case wasPending && r.ID == "" && p.Identity == ByID:
		return p.unknown(r.Reference)
	case r.Since != nil && now.Before(r.Since.Add(p.Grace)):
		return reconcile.Wait(ReasonCreating, r.Since.Add(p.Grace).Sub(now), "%s was created, and the API does not show it yet", p.reference())
	case !wasPending || r.ID != "": // the one before is gone
		r.Reference = Reference{Key: p.key, Pending: true}
		if p.Identity == ByToken {
			r.Token = rand.Text()
		}
		r.Since, r.Version = new(metav1.NewTime(now)), ""
	}
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	var id string
	err := p.call(ctx, func(ctx context.Context) (err error) {
		id, err = p.Create(ctx, p.obj, r.Reference, desired)
		return err
	})
	switch {
	case errors.Is(err, ErrExists):
		return p.existsAlready(ctx, wasPending, desired)
	case err != nil:
		if isRefused(err) && !wasPending {
			p.unrecord()
		}
		return err
	}
	r.ID, r.Version = id, p.version
	if p.Grace > 0 {
		return reconcile.Wait(ReasonCreating, min(p.Grace, firstLook), "%s was created, and the API does not show it yet", r)
	}
	r.Pending = false
	return p.look(ctx)
}

// existsAlready is for a key that was taken between the observation and the creation: by an earlier creation of ours, whose record was
// pending, or by somebody else.
func (p *pass[T, S]) existsAlready(ctx context.Context, wasPending bool, desired S) error {
	observed, err := p.observe(ctx, p.record.Reference)
	if errors.Is(err, ErrNotFound) {
		return reconcile.Wait(ReasonCreating, firstLook, "the API answers that %s exists, and does not show it", p.record)
	}
	if err != nil {
		return err
	}
	if !wasPending && p.IsOurs == nil {
		p.unrecord()
		return p.exists()
	}
	if err := p.acquire(observed); err != nil {
		return err
	}
	return p.update(ctx, observed, desired)
}

func (p *pass[T, S]) unknown(ref Reference) error {
	return reconcile.Stalled(ReasonUnknown, fmt.Errorf("the answer to the creation of %s was lost, so it may exist: it is not created again; "+
		"look for it in the API, and write its ID into the status, or remove pending from the status if it does not exist", ref))
}
