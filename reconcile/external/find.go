package external

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// candidate is what a search has found under a desired key.
type candidate[S any] struct {
	key       string
	observed  *S   // nil if the thing does not exist, or was created and not observed since
	missing   bool // the thing has to be created
	foreign   bool // the thing is not known to be ours, so it has to be created or taken over
	wasFaster bool // an earlier pass created the thing, with an unknown version
}

// mostWork is the largest number of things that one pass creates or updates together. Each of them needs more calls than the observation.
// The limit leaves time for a function that yields.
const mostWork = 4

// search observes the things under the desired keys, and decides whether they may become ours. It does not change a thing. It corrects the
// record if a thing turns out to exist, not to exist, or to belong to somebody else.
type search[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted
}

// find observes desired things, as many as the turn of the pass allows. rest is the wait for a later pass that continues with the other
// things. If a desired thing must not become ours, find returns an error. The argument later is the wait for a former thing, or nil. If
// later is not nil, find returns later in place of such an error.
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

// toUpdate reports whether an observed thing has to be updated.
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

// rests reports whether a retry without a change would end with the same outcome.
func rests(err error) bool {
	return err == nil || errors.Is(err, ErrExists) || calls.IsFinal(err)
}

// admit returns an error if one of the things must not be created or taken over. In this case it removes the records of all things that are
// not ours.
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

// unrecord removes the things that are not ours from the record.
func (s search[T, S]) unrecord(found []*candidate[S]) {
	for _, f := range found {
		if _, recorded := s.ledger.get(f.key); f.foreign && (!f.missing || !recorded) { // a recorded thing that the API does not show may exist
			s.ledger.remove(f.key)
		}
	}
}
