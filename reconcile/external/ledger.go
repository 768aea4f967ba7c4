package external

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
	"github.com/opblocks/opblocks/reconcile/external/internal/claims"
)

// ledger has the record of an object during a pass. It changes the record in memory as the pass changes things, and writes it
// into the status.
type ledger[T client.Object, S any] struct {
	things
	resource *Resource[T, S]
	obj      T
	record   *Record
	saved    Record // the last record that was passed to Save
	visit    *calls.Visit
	claims   *claims.Table
}

// takeBack reports whether a former key is desired again. Then the record must not keep the version: it is not known with which version
// that thing was written, and its deletion may have begun. If the object has a newer thing, the values that were issued belong to that
// thing, so takeBack removes them from the record too.
func (l *ledger[T, S]) takeBack() bool {
	if !slices.ContainsFunc(l.record.Former, func(ref Reference) bool { return slices.Contains(l.keys, ref.Key) }) {
		return false
	}
	l.record.Version = ""
	if len(l.record.present()) > 0 {
		l.record.forgetWritten()
	}
	return true
}

// adopt returns an error if a thing that is not ours must not be taken over. Then it removes a pending record of this key. It keeps a
// confirmed record: somebody may have removed the mark by which IsOurs finds that the thing is ours, and may put it back.
func (l *ledger[T, S]) adopt(key string, observed S) error {
	err := ErrExists
	if l.resource.Adopt != nil {
		err = l.resource.Adopt(l.obj, observed)
	}
	if err != nil && l.isMissing(key) {
		l.remove(key)
	}
	if errors.Is(err, ErrExists) {
		return reconcile.Stalled(reasonExists, &takenError{key})
	}
	return err
}

// takenError is returned if a key belongs to somebody else.
type takenError struct{ key string }

func (e *takenError) Error() string {
	return e.key + " exists and was not created for this object: it is left alone; choose another name, or delete it if nobody needs it"
}

// Is makes errors.Is(err, ErrExists) true.
func (e *takenError) Is(target error) bool { return target == ErrExists }

// store writes the record into the status in memory. If a function still runs with the object after its context has ended, store does
// nothing, because the pass has another copy of the object.
func (l *ledger[T, S]) store() {
	if l.visit.IsDetached() {
		return
	}
	r := l.record
	r.Reference, r.Things, r.Former = Reference{}, nil, l.former()
	for _, key := range l.keys {
		ref, recorded := l.get(key)
		switch {
		case !recorded:
		case l.resource.Keys == nil:
			r.Reference = ref
		default:
			r.Things = append(r.Things, ref)
		}
	}
	l.saved.Generation = r.Generation // Save need not be called if only the generation differs
	if l.resource.Save != nil && !equality.Semantic.DeepEqual(*r, l.saved) {
		l.resource.Save(l.obj, r)
		l.saved = *r.DeepCopy()
	}
}

// checkpoint writes the record into the status before the pass changes a thing. Keys that are not in the record any more then
// become free for other objects.
func (l *ledger[T, S]) checkpoint(ctx context.Context) error {
	l.store()
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	l.unclaim(l.keys...)
	return nil
}

// unclaim frees all keys of the object except these and the recorded ones.
func (l *ledger[T, S]) unclaim(keys ...string) {
	if l.resource.Others != nil {
		l.claims.Keep(client.ObjectKeyFromObject(l.obj), append(keys, keysOf(l.all)...))
	}
}

// letGo writes the record into the status, if other objects may wait for a key that is not in the record any more.
func (l *ledger[T, S]) letGo(ctx context.Context) error {
	if l.resource.Others == nil {
		return nil
	}
	return l.checkpoint(ctx)
}
