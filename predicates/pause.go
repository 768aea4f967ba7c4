package predicates

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/pause"
)

// PausedAnnotation pauses an object when its value is "true" or empty, or until a time in RFC 3339, such as
// 2026-03-01T12:00:00Z. "false" is as none. Any other value pauses as "true" does: who wrote it wanted the operator to keep
// away, and a typing mistake must not start it.
const PausedAnnotation = pause.Annotation

// IsPaused says whether the object is paused at this time, and until when; a zero time is until the annotation goes. A
// reconciler asks it in every pass, whatever predicates there are, because other watches bring passes too; it then comes
// back after until.Sub(now), since the API server sends no event when that time is there. Package reconcile does all this.
func IsPaused(obj client.Object, now time.Time) (paused bool, until time.Time) {
	p := pause.Of(obj).At(now)
	return p.Paused, p.Until
}

// PauseChanged passes updates that pause an object, end its pause or move its end, and everything that is no update, as
// [FieldChanged] does. A pause that ends by its time is no event.
func PauseChanged() predicate.Predicate { return FieldChanged(pause.Of) }

// NotPaused drops updates of objects that are paused, to spare the passes:
//
//	Create   always: a reconciler says that the object is paused, and comes back when that ends
//	Update   the new object is not paused, or is being deleted, or its pause changed
//	Delete   always
//	Generic  the object is not paused, or is being deleted
//
// It is no replacement for [IsPaused], since it knows of one watch only. Now is the clock; nil means time.Now.
func NotPaused(now func() time.Time) predicate.Predicate {
	if now == nil {
		now = time.Now
	}
	counts := func(obj client.Object) bool {
		paused, _ := IsPaused(obj, now())
		return !paused || isDeleted(obj)
	}
	p := changed(func(before, after client.Object) bool {
		return counts(after) || pause.Of(before) != pause.Of(after)
	})
	p.GenericFunc = func(e event.GenericEvent) bool { return !isNil(e.Object) && counts(e.Object) }
	return p
}
