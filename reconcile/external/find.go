package external

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// candidate says what a search has found for a desired key.
type candidate[S any] struct {
	key       string
	observed  *S   // nil if the thing does not exist, or was created and not observed since then
	missing   bool // the thing has to be created
	foreign   bool // it is not known that the thing is ours, so it has to be created or taken over
	wasFaster bool // the thing was created by an earlier pass, with an unknown version
}

// mostWork is the largest number of things that one pass creates or updates together. A creation or an update needs more calls than an
// observation. The limit leaves time for a function that calls reconcile.Yield.
const mostWork = 4

// search observes the things under the desired keys, and decides whether they may become ours. It changes no thing. It corrects the
// record of a thing that turns out to exist, not to exist, or to belong to somebody else.
type search[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted
}

// find observes as many desired things as one pass may. If some are left, rest is the error with which a later pass continues. If a desired
// thing must not become ours, find returns an error. later is nil, or the error with which the step waits for a thing under a former key.
// find returns it in place of an error of findOne that a retry would not change.
func (s search[T, S]) find(ctx context.Context, open []string, desired S, later error) (found []*candidate[S], rest, err error) {
	work := 0
	for _, key := range open {
		if work == mostWork {
			rest = s.outside.visit.PutOff()
			break
		}
		if rest = s.outside.visit.Next(ctx, len(found) == 0); rest != nil {
			break
		}
		f, err := s.findOne(ctx, key)
		if later != nil && err != nil && rests(err) {
			return nil, nil, later
		}
		if err != nil {
			return nil, nil, err
		}
		ref, _ := s.ledger.get(key)
		if found = append(found, f); f.missing || s.toUpdate(ref, *f.observed, desired) {
			work++
		}
	}
	if rest != nil && len(found) == 0 {
		return nil, nil, rest
	}
	return found, rest, s.admit(ctx, found)
}

// toUpdate reports whether an observed thing needs an update.
func (s search[T, S]) toUpdate(ref Reference, observed, desired S) bool {
	return s.wanted.isOutdated(s.ledger.record) || s.wanted.mayUpdate() && s.resource.Differs(ref, observed, desired)
}

func (s search[T, S]) findOne(ctx context.Context, key string) (*candidate[S], error) {
	ref, recorded := s.ledger.get(key)
	observed, err := s.outside.observe(ctx, ref)
	switch isMissing := errors.Is(err, ErrNotFound); {
	case isMissing && !s.wanted.mayCreate():
		return nil, notFound(ref, s.wanted.every)
	case isMissing:
		return &candidate[S]{key: key, missing: true, foreign: true}, nil
	case err != nil:
		return nil, err
	}
	f := &candidate[S]{key: key, observed: &observed, foreign: !recorded || !s.outside.isOurs(ref, observed)}
	if f.foreign {
		err = s.ledger.adopt(key, observed)
	}
	return f, err
}

// rests reports whether a retry would have the same result, as long as nothing changes.
func rests(err error) bool {
	return err == nil || errors.Is(err, ErrExists) || calls.IsFinal(err)
}

// admit calls Admit for the things that are not ours yet. It returns an error if one of them must not be created or taken over. Then it
// also removes the records of all things that are not ours.
func (s search[T, S]) admit(ctx context.Context, found []*candidate[S]) error {
	if s.resource.Admit == nil {
		return nil
	}
	for _, f := range found {
		if !f.foreign {
			continue
		}
		ref, _ := s.ledger.get(f.key)
		err := s.outside.admit(ctx, ref, f.observed)
		if err == nil {
			continue
		}
		if _, waits := errors.AsType[reconcile.Waiter](err); waits || calls.IsRefused(err) {
			s.unrecord(found)
		}
		return err
	}
	return nil
}

// unrecord removes the things from the record that are not ours.
func (s search[T, S]) unrecord(found []*candidate[S]) {
	for _, f := range found {
		if _, recorded := s.ledger.get(f.key); f.foreign && (!f.missing || !recorded) { // a recorded thing that the API does not show may still exist
			s.ledger.remove(f.key)
		}
	}
}
