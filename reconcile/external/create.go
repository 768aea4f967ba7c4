package external

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// createAll creates the things that are missing. Before the first creation, all of them are recorded in the status. later is the error with
// which the step waits until the API shows a created thing. begunEarlier is true if an earlier pass has begun one of these creations.
func (a *applier[T, S]) createAll(ctx context.Context) (later error, begunEarlier bool, err error) {
	prepared := map[string]*Reference{} // by the key of the creation: the record if an earlier pass has begun it, or else nil
	for _, f := range a.found {
		if !f.missing {
			continue
		}
		earlier, err := a.prepare(f.key)
		switch _, isLate := errors.AsType[*creatingError](err); {
		case isLate:
			later, begunEarlier = err, true
		case err != nil:
			return nil, false, err
		default:
			prepared[f.key] = earlier
		}
	}
	for i, f := range a.found {
		earlier, isPrepared := prepared[f.key]
		if !isPrepared {
			continue
		}
		begunEarlier = begunEarlier || a.mayRepeat(earlier)
		err := a.create(ctx, f, earlier)
		if _, isLate := errors.AsType[*creatingError](err); isLate {
			later = err
		} else if err != nil {
			a.unprepareAll(a.found[i+1:], prepared)
			return nil, false, err
		}
	}
	return later, begunEarlier, nil
}

// mayRepeat reports whether a creation may repeat an earlier one with the same token. Then the API creates nothing, and the thing has the
// state that was desired at the earlier creation.
func (a *applier[T, S]) mayRepeat(earlier *Reference) bool {
	return earlier != nil && a.resource.Identity == ByToken
}

// unprepareAll undoes prepare for creations that are not sent because an earlier one has failed.
func (a *applier[T, S]) unprepareAll(unsent []*candidate[S], prepared map[string]*Reference) {
	for _, f := range unsent {
		if earlier, isPrepared := prepared[f.key]; isPrepared {
			a.unprepare(f.key, earlier)
		}
	}
}

// unprepare undoes prepare for a creation that had no effect: it puts back the record of the earlier pass, or removes the record.
func (a *applier[T, S]) unprepare(key string, earlier *Reference) {
	if earlier == nil {
		a.ledger.remove(key)
		return
	}
	a.ledger.set(*earlier)
}

// prepare records a thing before its creation. If an earlier pass has begun the creation, it returns that pass's record. It returns an error
// if an earlier creation may have had an effect that the API does not show yet.
func (a *applier[T, S]) prepare(key string) (earlier *Reference, err error) {
	ref, recorded := a.ledger.get(key)
	if recorded && ref.Pending {
		earlier = new(ref)
	}
	switch now := a.resource.Clock.Now(); {
	case a.outside.isUnknown(ref):
		return earlier, unknown(ref)
	case ref.Since != nil && now.Before(ref.Since.Add(a.resource.Grace)):
		return earlier, &creatingError{ref, ref.Since.Add(a.resource.Grace).Sub(now)}
	case earlier == nil || ref.ID != "": // nothing is recorded, or a recorded thing is gone
		ref = Reference{Key: key, Pending: true, Since: new(metav1.NewTime(now))}
		if a.resource.Identity == ByToken {
			ref.Token = rand.Text()
		}
		a.ledger.set(ref)
		a.ledger.record.Issued, a.ledger.record.Published = "", ""
	case a.resource.Grace > 0: // the creation is repeated, and the API may show its effect late again
		ref.Since = new(metav1.NewTime(now))
		a.ledger.set(ref)
	}
	a.ledger.record.Version = "" // unknown until the API has answered
	return earlier, nil
}

// create creates a thing that was recorded by prepare.
func (a *applier[T, S]) create(ctx context.Context, f *candidate[S], earlier *Reference) error {
	if err := a.ledger.checkpoint(ctx); err != nil {
		a.unprepare(f.key, earlier)
		return err
	}
	ref, _ := a.ledger.get(f.key)
	begun := metav1.NewTime(a.resource.Clock.Now())
	id, err := a.outside.create(ctx, ref, a.desired)
	switch {
	case errors.Is(err, ErrExists):
		return a.existsAlready(ctx, f, earlier != nil)
	case err != nil:
		if calls.IsRefused(err) {
			a.unprepare(f.key, earlier)
		}
		return err
	}
	ref.ID, ref.Pending = id, a.resource.Grace > 0
	if earlier != nil { // otherwise the recorded time is the time of this creation
		ref.Since = &begun
	}
	if a.ledger.set(ref); ref.Pending {
		return &creatingError{ref, min(a.resource.Grace, firstLook)}
	}
	if a.mayRepeat(earlier) {
		return a.lookAtRepeated(ctx, f)
	}
	return a.lookAgain(ctx, f)
}

// lookAtRepeated observes a thing after a repeated creation. An earlier creation may have created it with another
// state, and then it needs an update.
func (a *applier[T, S]) lookAtRepeated(ctx context.Context, f *candidate[S]) error {
	ref, _ := a.ledger.get(f.key)
	observed, err := a.outside.observe(ctx, ref)
	if errors.Is(err, ErrNotFound) {
		return &creatingError{ref, firstLook}
	}
	if err != nil {
		return err
	}
	f.observed, f.wasFaster = &observed, a.wanted.version != ""
	a.outside.tell(observed)
	return nil
}

// existsAlready is called if the API answers that the key is taken, although the thing was not found before. Either an earlier
// creation of ours has taken the key, and its record is pending, or somebody else has.
func (a *applier[T, S]) existsAlready(ctx context.Context, f *candidate[S], wasPending bool) error {
	ref, _ := a.ledger.get(f.key)
	observed, err := a.outside.observe(ctx, ref)
	if errors.Is(err, ErrNotFound) && a.resource.Identity != ByKey && !wasPending { // another thing has the key, and another ID
		a.ledger.remove(f.key)
		return reconcile.Stalled(reasonExists, &takenError{f.key})
	}
	if errors.Is(err, ErrNotFound) {
		return reconcile.Wait(reasonCreating, firstLook, "the API answers that %s exists, and does not show it", ref)
	}
	if err != nil {
		return err
	}
	f.observed, f.wasFaster = &observed, a.wanted.version != ""
	if !wasPending && a.resource.IsOurs == nil || !a.outside.isOurs(ref, observed) {
		if err := a.ledger.adopt(f.key, observed); err != nil {
			return err
		}
		a.ledger.remove(f.key)
		return reconcile.Wait(reasonExists, firstLook, "%s was created by somebody else just now", f.key) // the next pass calls Admit
	}
	a.ledger.set(a.confirmed(f))
	a.outside.tell(observed)
	return nil
}

// creatingError is the error with which the step waits until the API shows a created thing.
type creatingError struct {
	ref   Reference
	after time.Duration
}

func (e *creatingError) Error() string {
	return e.ref.String() + " was created, and the API does not show it yet"
}

// Waiting implements [reconcile.Waiter].
func (e *creatingError) Waiting() (reason string, after time.Duration) {
	return reasonCreating, e.after
}
