package external

import (
	"context"
	"errors"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// candidate is what was found under a desired key.
type candidate[S any] struct {
	key       string
	observed  *S   // nil if it does not exist, or was created and not observed since
	missing   bool // it is to be created
	foreign   bool // it is not known to be ours: it is to be created or taken over
	wasFaster bool // it was created by an earlier pass, whose version is unknown
}

// find observes desired things, as many as the turn of the pass allows, and the former ones that may not exist. rest is the wait for a later pass
// that goes on with the others. It returns an error if a desired one must not become ours. It changes nothing outside. In the record it changes
// what turns out to exist, not to exist, or to belong to somebody else.
func (p *pass[T, S]) find(ctx context.Context, desired S) (found []*candidate[S], rest, err error) {
	later, err := dropping[T, S]{p}.settle(ctx)
	if err != nil {
		return nil, nil, err
	}
	work := 0
	for _, key := range p.round.open() {
		if work == mostWork {
			rest = p.visit.PutOff()
			break
		}
		if rest = p.visit.Next(ctx, len(found) == 0); rest != nil {
			break
		}
		f, err := p.findOne(ctx, key)
		if later != nil && err != nil && rests(err) {
			return nil, nil, later
		}
		if err != nil {
			return nil, nil, err
		}
		ref, _ := p.get(key)
		if found = append(found, f); f.missing || p.mayUpdate() && (p.record.Version != p.version || p.Differs(ref, *f.observed, desired)) {
			work++
		}
	}
	if rest != nil && len(found) == 0 {
		return nil, nil, rest
	}
	return found, rest, p.admit(ctx, found)
}

func (p *pass[T, S]) findOne(ctx context.Context, key string) (*candidate[S], error) {
	ref, recorded := p.get(key)
	observed, err := p.observe(ctx, ref)
	switch isMissing := errors.Is(err, ErrNotFound); {
	case isMissing && !p.mayCreate():
		return nil, p.notFound(ref)
	case isMissing:
		return &candidate[S]{key: key, missing: true, foreign: true}, nil
	case err != nil:
		return nil, err
	}
	f := &candidate[S]{key: key, observed: &observed, foreign: !recorded || !p.isOurs(ref, observed)}
	if f.foreign {
		err = p.adopt(f)
	}
	return f, err
}

// isOurs reports whether what was found is the thing that is recorded.
func (p *pass[T, S]) isOurs(ref Reference, observed S) bool {
	return !p.asks(ref) || p.IsOurs(p.obj, ref, observed)
}

// withID returns a reference with the ID of what was found, if the reference has none.
func (p *pass[T, S]) withID(ref Reference, observed S) Reference {
	if p.ID != nil && ref.ID == "" {
		ref.ID = p.ID(observed)
	}
	return ref
}

// asks reports whether IsOurs is asked of a thing that is recorded.
func (p *pass[T, S]) asks(ref Reference) bool {
	return p.IsOurs != nil && (ref.Pending || p.Identity == ByKey && !p.MarksOnlyPending && !ref.Adopted)
}

// adopt returns an error if a thing that is not ours must not be taken over. Then it is not recorded any more, unless ours was there before: if
// somebody has taken our mark off, it can be put on again.
func (p *pass[T, S]) adopt(f *candidate[S]) error {
	err := ErrExists
	if p.Adopt != nil {
		err = p.Adopt(p.obj, *f.observed)
	}
	if err != nil && p.isMissing(f.key) {
		p.remove(f.key)
	}
	if errors.Is(err, ErrExists) {
		return reconcile.Stalled(reasonExists, &takenError{f.key})
	}
	return err
}

// takenError says that a key belongs to somebody else.
type takenError struct{ key string }

func (e *takenError) Error() string {
	return e.key + " exists and was not created for this object: it is left alone; choose another name, or delete it if nobody needs it"
}

// Is reports that it is [ErrExists].
func (e *takenError) Is(target error) bool { return target == ErrExists }

// rests reports whether only a change leads to another outcome.
func rests(err error) bool {
	return err == nil || errors.Is(err, ErrExists) || calls.IsFinal(err)
}

// admit returns an error if one of the things must not be created or taken over. Then none of them is recorded any more.
func (p *pass[T, S]) admit(ctx context.Context, found []*candidate[S]) error {
	if p.Admit == nil {
		return nil
	}
	for _, f := range found {
		if !f.foreign {
			continue
		}
		ref, _ := p.get(f.key)
		observed := f.observed
		err := p.call(ctx, calls.Admit, func(ctx context.Context) error { return p.Admit(ctx, p.client, p.obj, ref, observed) })
		if err == nil {
			continue
		}
		if _, waits := errors.AsType[reconcile.Waiter](err); waits || calls.IsRefused(err) {
			p.unrecord(found)
		}
		return err
	}
	return nil
}

// unrecord removes what is not ours from the record.
func (p *pass[T, S]) unrecord(found []*candidate[S]) {
	for _, f := range found {
		if _, recorded := p.get(f.key); f.foreign && (!f.missing || !recorded) { // what is recorded and not shown may exist
			p.remove(f.key)
		}
	}
}
