package external

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// applier creates the things that a search has not found, and updates the things that it has found.
type applier[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted

	found   []*candidate[S]
	desired S
	isPart  bool // a later pass handles the other things of the object
	behind  bool // the API may still show an old state
}

// apply creates the things that are missing, and updates the things that differ.
func (a *applier[T, S]) apply(ctx context.Context) error {
	a.confirm()
	begin := a.ledger.record.Version
	version := begin // the version with which the existing things were written
	if !slices.ContainsFunc(a.found, func(f *candidate[S]) bool { return !f.missing }) {
		version = a.wanted.version
	}
	recorded := a.ledger.record.Version
	later, begunEarlier, err := a.createAll(ctx)
	if err != nil {
		return err
	}
	if begunEarlier && recorded != a.wanted.version {
		version = "" // it is not known with which version an earlier pass created the thing
	}
	if a.ledger.record.Version = version; later != nil {
		return later
	}
	if !a.wanted.mayUpdate() {
		if slices.ContainsFunc(a.found, func(f *candidate[S]) bool { return f.wasFaster }) {
			a.ledger.record.Version = ""
		}
		return nil
	}
	for _, f := range a.found {
		isOutdated := f.wasFaster || version != a.wanted.version && !f.missing
		if f.observed == nil || !isOutdated && !a.differs(f) {
			continue
		}
		if version != a.wanted.version {
			a.ledger.record.Version = "" // unknown until the API has answered
		}
		if err := a.update(ctx, f); err != nil {
			return err
		}
	}
	if a.ledger.record.Version = a.wanted.version; a.isPart && begin != a.wanted.version {
		a.ledger.record.Version = "" // the other things may have been written with another version
	}
	return nil
}

// confirm records the things that were found. If a thing was taken over, it removes the version from the record, because it is not known
// with which version that thing was written.
func (a *applier[T, S]) confirm() {
	for _, f := range a.found {
		if f.missing {
			continue
		}
		ref := a.confirmed(f)
		if f.foreign {
			a.ledger.record.forgetWritten()
			ref.Adopted = true
		}
		a.ledger.set(ref)
		a.outside.tell(*f.observed)
	}
}

// confirmed returns the record of a thing that was found.
func (a *applier[T, S]) confirmed(f *candidate[S]) Reference {
	ref, _ := a.ledger.get(f.key)
	ref.Pending = false
	if f.foreign && a.resource.ID != nil {
		ref.ID = "" // this ID belongs to another thing
	}
	return a.outside.withID(ref, *f.observed)
}

// update changes a thing.
func (a *applier[T, S]) update(ctx context.Context, f *candidate[S]) error {
	if err := a.ledger.checkpoint(ctx); err != nil {
		return err
	}
	ref, _ := a.ledger.get(f.key)
	if err := a.outside.update(ctx, ref, *f.observed, a.desired); err != nil {
		return err
	}
	if err := a.lookAgain(ctx, f); err != nil {
		return err
	}
	a.behind = a.behind || a.looksAgain() && a.differs(f)
	return nil
}

func (a *applier[T, S]) differs(f *candidate[S]) bool {
	ref, _ := a.ledger.get(f.key)
	return a.resource.Differs(ref, *f.observed, a.desired)
}

func (a *applier[T, S]) looksAgain() bool {
	return a.resource.Observed != nil || a.resource.Ready != nil || a.resource.Publish != nil
}

// lookAgain observes a thing that was just changed, if a function of the resource gets the observed state.
func (a *applier[T, S]) lookAgain(ctx context.Context, f *candidate[S]) error {
	if !a.looksAgain() {
		return nil
	}
	ref, _ := a.ledger.get(f.key)
	observed, err := a.outside.observe(ctx, ref)
	if err != nil {
		return err
	}
	f.observed = &observed
	a.outside.tell(observed)
	return nil
}

// createAll creates the things that are missing. Before the first creation, all of them are recorded in the status. later is the error with
// which the step waits until the API shows a created thing. begunEarlier is true if an earlier pass has begun one of these creations.
func (a *applier[T, S]) createAll(ctx context.Context) (later error, begunEarlier bool, err error) {
	begun := map[string]*Reference{} // by the key of the creation: the record if an earlier pass has begun it, or else nil
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
			begun[f.key] = earlier
		}
	}
	for i, f := range a.found {
		earlier, isPrepared := begun[f.key]
		if !isPrepared {
			continue
		}
		begunEarlier = begunEarlier || a.mayRepeat(earlier)
		err := a.create(ctx, f, earlier)
		if _, isLate := errors.AsType[*creatingError](err); isLate {
			later = err
		} else if err != nil {
			a.unprepare(a.found[i+1:], begun)
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

// unprepare undoes prepare for creations that are not sent because an earlier one has failed.
func (a *applier[T, S]) unprepare(unsent []*candidate[S], begun map[string]*Reference) {
	for _, f := range unsent {
		if earlier, isPrepared := begun[f.key]; isPrepared {
			a.undoPrepare(f.key, earlier)
		}
	}
}

// undoPrepare puts back the record from before prepare, since nothing was created.
func (a *applier[T, S]) undoPrepare(key string, earlier *Reference) {
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
		a.undoPrepare(f.key, earlier)
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
			a.undoPrepare(f.key, earlier)
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
