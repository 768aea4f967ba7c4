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

// ledger is the record of an object during a pass. It has the things, as the pass changes them, and writes them into the status.
type ledger[T client.Object, S any] struct {
	things
	resource *Resource[T, S]
	obj      T
	record   *Record
	saved    Record // the record that Save has got last
	visit    *calls.Visit
	claims   *claims.Table
}

// takeBack reports whether a former thing is desired again. In this case it removes the version from the record: the last written state
// of that thing is not known, and its deletion may have begun. The record of an issue is about the newer thing, so takeBack removes it as
// well.
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

// adopt returns an error if a thing that is not ours must not be taken over. It then also removes a pending record. A confirmed record
// stays: somebody may have removed our mark from the thing, and can put it back.
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

// takenError says that a key belongs to somebody else.
type takenError struct{ key string }

func (e *takenError) Error() string {
	return e.key + " exists and was not created for this object: it is left alone; choose another name, or delete it if nobody needs it"
}

// Is reports that it is [ErrExists].
func (e *takenError) Is(target error) bool { return target == ErrExists }

// store writes the things into the record in memory. If a function still has the object after its context has ended, the pass has another
// copy, and store does nothing.
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
	l.saved.Generation = r.Generation // an author's own fields do not depend on it
	if l.resource.Save != nil && !equality.Semantic.DeepEqual(*r, l.saved) {
		l.resource.Save(l.obj, r)
		l.saved = *r.DeepCopy()
	}
}

// checkpoint writes the record before the pass changes a thing. Other objects may then have the keys that the record has lost.
func (l *ledger[T, S]) checkpoint(ctx context.Context) error {
	l.store()
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	l.unclaim(l.keys...)
	return nil
}

// unclaim releases all keys except the recorded keys and these.
func (l *ledger[T, S]) unclaim(keys ...string) {
	if l.resource.Others != nil {
		l.claims.Keep(client.ObjectKeyFromObject(l.obj), append(keys, keysOf(l.all)...))
	}
}

// letGo writes the record, if there are other objects that may wait for a key that the record has lost.
func (l *ledger[T, S]) letGo(ctx context.Context) error {
	if l.resource.Others == nil {
		return nil
	}
	return l.checkpoint(ctx)
}
