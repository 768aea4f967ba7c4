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

// ledger is the record of an object during a pass: the things, as the pass changes them, and how they get into the status.
type ledger[T client.Object, S any] struct {
	things
	resource *Resource[T, S]
	obj      T
	record   *Record
	saved    Record // as Save has got it
	visit    *calls.Visit
	claims   *claims.Table
}

// takeBack looks for a former thing that is desired again. What was written to it is not known, and its deletion may have begun. What was
// issued is of the last thing that was there. It reports whether it has found one.
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

// adopt returns an error if a thing that is not ours must not be taken over. Then it is not recorded any more, unless ours was there before: if
// somebody has taken our mark off, it can be put on again.
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

// store writes the things into the record in memory, unless a function goes on that has the object: then the pass has another copy of it.
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
	l.saved.Generation = r.Generation // no fields of an author's own depend on it
	if l.resource.Save != nil && !equality.Semantic.DeepEqual(*r, l.saved) {
		l.resource.Save(l.obj, r)
		l.saved = *r.DeepCopy()
	}
}

// checkpoint writes the record, before something is changed outside of the cluster. Others may have the keys that it does not have any more.
func (l *ledger[T, S]) checkpoint(ctx context.Context) error {
	l.store()
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	l.unclaim(l.keys...)
	return nil
}

// unclaim lets others have the keys that are neither recorded nor among these.
func (l *ledger[T, S]) unclaim(keys ...string) {
	if l.resource.Others != nil {
		l.claims.Keep(client.ObjectKeyFromObject(l.obj), append(keys, keysOf(l.all)...))
	}
}

// letGo writes the record if others may wait for a key that it does not have any more.
func (l *ledger[T, S]) letGo(ctx context.Context) error {
	if l.resource.Others == nil {
		return nil
	}
	return l.checkpoint(ctx)
}
