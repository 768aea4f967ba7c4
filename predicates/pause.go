package predicates

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/record"
)

// IsPaused reports whether the annotation opblocks.dev/paused, which is reconcile.PausedAnnotation, pauses the object at the time
// now, and until when. A zero until means that the pause has no end time. The values of the annotation are:
//
//	"true" or ""            paused until the annotation is removed or changed
//	2026-03-01T12:00:00Z    paused until this time (RFC 3339)
//	"false"                 not paused, as without the annotation
//	anything else           paused as with "true": a typing error must not end a pause
//
// A reconciler has to call it in every reconcile, whatever its predicates are, because other watches also trigger
// reconciles. If until is not zero, it should requeue after until.Sub(now), because the API server sends no event when that
// time comes. Package reconcile does both.
func IsPaused(obj client.Object, now time.Time) (paused bool, until time.Time) {
	p := record.PauseOf(obj).At(now)
	return p.Paused, p.Until
}

// PauseChanged passes updates that start a pause, end it or change its end time, and all events that are not updates, as
// [FieldChanged] does. A pause that ends because its end time comes sends no event.
func PauseChanged() predicate.Predicate { return FieldChanged(pauseOf) }

// NotPaused drops updates of paused objects, which saves reconciles. It passes these events:
//
//	Create   always, since the reconciler has to show that the object is paused, and to requeue it for the end of the pause
//	Update   the new object is not paused, or is being deleted, or its pause changed, or the two have different UIDs
//	Delete   always
//	Generic  the object is not paused, or is being deleted
//
// It does not replace [IsPaused], because it sees the events of only one watch. The function now is the clock; nil means
// time.Now.
func NotPaused(now func() time.Time) predicate.Predicate {
	if now == nil {
		now = time.Now
	}
	active := func(obj client.Object) bool {
		paused, _ := IsPaused(obj, now())
		return !paused || isDeleted(obj)
	}
	p := changed(func(before, after client.Object) bool {
		return active(after) || record.PauseOf(before) != record.PauseOf(after)
	})
	p.GenericFunc = func(e event.GenericEvent) bool { return !isNil(e.Object) && active(e.Object) }
	return p
}

func pauseOf(obj client.Object) record.Pause { return record.PauseOf(obj) }
