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

// applier makes what was found as desired.
type applier[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted

	found   []*candidate[S]
	desired S
	isPart  bool // a later pass goes on with other things
	behind  bool // the API may not show the present state yet
}

// apply creates what is missing, and updates what differs.
func (a *applier[T, S]) apply(ctx context.Context) error {
	a.confirm()
	begin := a.ledger.record.Version
	version := begin // the version of what was found
	if !slices.ContainsFunc(a.found, func(f *candidate[S]) bool { return !f.missing }) {
		version = a.wanted.version
	}
	recorded := a.ledger.record.Version
	later, begunEarlier, err := a.createAll(ctx)
	if err != nil {
		return err
	}
	if begunEarlier && recorded != a.wanted.version {
		version = "" // nothing tells with which one it was created
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
			a.ledger.record.Version = "" // until the API has answered
		}
		if err := a.update(ctx, f); err != nil {
			return err
		}
	}
	if a.ledger.record.Version = a.wanted.version; a.isPart && begin != a.wanted.version {
		a.ledger.record.Version = "" // the other things may have another one
	}
	return nil
}

// confirm records what was found. If it is not known which version it has, no version is recorded until all is updated.
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

// confirmed returns the reference to what was found.
func (a *applier[T, S]) confirmed(f *candidate[S]) Reference {
	ref, _ := a.ledger.get(f.key)
	ref.Pending = false
	if f.foreign && a.resource.ID != nil {
		ref.ID = "" // it was of another thing
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

// lookAgain observes what was changed just now, if somebody wants to know what the API has made of it.
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

// createAll creates what is missing. The status records all of it before the first creation. later is the wait for the API to show what was
// created, and begunEarlier is whether an earlier pass has begun one of these creations.
func (a *applier[T, S]) createAll(ctx context.Context) (later error, begunEarlier bool, err error) {
	wasPending := map[string]bool{} // by the keys that are to be created
	for _, f := range a.found {
		if !f.missing {
			continue
		}
		pending, err := a.prepare(f.key)
		switch _, isLate := errors.AsType[*creatingError](err); {
		case isLate:
			later, begunEarlier = err, true
		case err != nil:
			return nil, false, err
		default:
			wasPending[f.key] = pending
		}
	}
	for i, f := range a.found {
		pending, isPrepared := wasPending[f.key]
		if !isPrepared {
			continue
		}
		begunEarlier = begunEarlier || a.mayRepeat(pending)
		err := a.create(ctx, f, pending)
		if _, isLate := errors.AsType[*creatingError](err); isLate {
			later = err
		} else if err != nil {
			a.unprepare(a.found[i+1:], wasPending)
			return nil, false, err
		}
	}
	return later, begunEarlier, nil
}

// mayRepeat reports whether a creation may be a repetition that the API takes for the first one, by the token: then the thing is as an earlier pass
// desired it.
func (a *applier[T, S]) mayRepeat(wasPending bool) bool {
	return wasPending && a.resource.Identity == ByToken
}

// unprepare removes what was recorded for creations that are not sent, since one before them has failed.
func (a *applier[T, S]) unprepare(unsent []*candidate[S], wasPending map[string]bool) {
	for _, f := range unsent {
		if pending, isPrepared := wasPending[f.key]; isPrepared && !pending {
			a.ledger.remove(f.key)
		}
	}
}

// prepare records a thing that is about to be created. It returns an error if a creation may have had an effect that the API does not show
// yet.
func (a *applier[T, S]) prepare(key string) (wasPending bool, err error) {
	ref, recorded := a.ledger.get(key)
	wasPending = recorded && ref.Pending
	switch now := a.resource.Clock.Now(); {
	case a.outside.isUnknown(ref):
		return wasPending, unknown(ref)
	case ref.Since != nil && now.Before(ref.Since.Add(a.resource.Grace)):
		return wasPending, &creatingError{ref, ref.Since.Add(a.resource.Grace).Sub(now)}
	case !wasPending || ref.ID != "": // the one before is gone
		ref = Reference{Key: key, Pending: true, Since: new(metav1.NewTime(now))}
		if a.resource.Identity == ByToken {
			ref.Token = rand.Text()
		}
		a.ledger.set(ref)
		a.ledger.record.Issued, a.ledger.record.Published = "", ""
	}
	a.ledger.record.Version = "" // until the API has answered
	return wasPending, nil
}

// create creates a thing that the status records.
func (a *applier[T, S]) create(ctx context.Context, f *candidate[S], wasPending bool) error {
	if err := a.ledger.checkpoint(ctx); err != nil {
		return err
	}
	ref, _ := a.ledger.get(f.key)
	id, err := a.outside.create(ctx, ref, a.desired)
	switch {
	case errors.Is(err, ErrExists):
		return a.existsAlready(ctx, f, wasPending)
	case err != nil:
		if calls.IsRefused(err) && !wasPending {
			a.ledger.remove(f.key)
		}
		return err
	}
	ref.ID, ref.Pending = id, a.resource.Grace > 0
	if a.ledger.set(ref); ref.Pending {
		return &creatingError{ref, min(a.resource.Grace, firstLook)}
	}
	if a.mayRepeat(wasPending) {
		return a.lookAtRepeated(ctx, f)
	}
	return a.lookAgain(ctx, f)
}

// lookAtRepeated observes what a repetition has found or created, so that it can be updated.
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

// existsAlready is for a key that was taken between the observation and the creation: by an earlier creation of ours, whose record was
// pending, or by somebody else.
func (a *applier[T, S]) existsAlready(ctx context.Context, f *candidate[S], wasPending bool) error {
	ref, _ := a.ledger.get(f.key)
	observed, err := a.outside.observe(ctx, ref)
	if errors.Is(err, ErrNotFound) && a.resource.Identity != ByKey && !wasPending { // it has the key, and another ID
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
		return reconcile.Wait(reasonExists, firstLook, "%s was created by somebody else just now", f.key) // it has yet to be admitted
	}
	a.ledger.set(a.confirmed(f))
	a.outside.tell(observed)
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
	return reasonCreating, e.after
}
