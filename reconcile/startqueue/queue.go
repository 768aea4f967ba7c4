// Package startqueue limits how many objects of a kind run at once. Package schedule decides from the statuses of the
// objects which ones may start. A [Queue] lists the objects, asks package schedule, and enqueues the next objects when
// a run ends. The queue is not in memory, so the limit also holds after a restart of the operator.
//
//	queue := startqueue.Queue[*Backup]{
//		Limit: 5, Clock: clock.RealClock{}, List: &BackupList{},
//		Candidate: func(b *Backup, now time.Time) (schedule.Candidate, bool) {
//			return b.Status.Candidate(now, client.ObjectKeyFromObject(b), b.Status.Running, b.Spec.Offset(b.UID))
//		},
//	}
//	reconcile.Named("backup", step{queue}, queue.Watching())
//
// The step calls [Queue.MayStart] before it starts a run that is due. If the object may not start, the step waits.
// When the object may start, [Queue.Watching] triggers its next reconcile.
package startqueue

import (
	"context"
	"iter"
	"reflect"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// Queue limits how many objects of type T run at once. All fields are required, except Limit. It is safe for concurrent use
// if nobody changes its fields.
type Queue[T client.Object] struct {
	// Limit is the maximum number of objects that run at once. 0 or less means no limit.
	Limit int
	// Clock is clock.RealClock{}, except in tests.
	Clock clock.PassiveClock
	// List is an empty list of the kind of T. It is never changed.
	List client.ObjectList
	// Candidate returns the candidate for an object, and whether the object is a candidate: see
	// [schedule.Status.Candidate]. An object that cannot start, because it is invalid or disabled, is not a candidate.
	// The function must only read the object, which may be an object of the cache.
	//
	// Objects that are being deleted or paused (reconcile.PausedAnnotation) are not candidates, and Candidate
	// is not called for them.
	Candidate func(obj T, now time.Time) (candidate schedule.Candidate, ok bool)
}

// MayStart reports whether obj may start a run now: whether fewer than Limit other objects run or come before it, as in
// [schedule.Candidate.MayStart]. It lists the objects by r, which is usually the client of a step and reads from the cache. If
// the list fails, it returns the error. Without a limit it lists nothing.
func (q Queue[T]) MayStart(ctx context.Context, r client.Reader, obj T) (bool, error) {
	if q.Limit <= 0 {
		return true, nil
	}
	now := q.Clock.Now()
	all, err := q.candidates(ctx, r, now)
	if err != nil {
		return false, err
	}
	own, _ := q.Candidate(obj, now)
	own.Object = client.ObjectKeyFromObject(obj)
	return own.MayStart(q.Limit, all), nil
}

// Watching watches the objects of the kind. When an object does not run or wait any more, Watching enqueues the objects
// that may start now. That happens when its run has ended or was skipped, and when the object was deleted, was paused
// or became invalid. A creation enqueues nothing. Without a limit no event enqueues anything.
func (q Queue[T]) Watching() reconcile.Watch {
	empty := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return reconcile.Watching(empty, q.enqueueNext, q.placeLeft())
}

// enqueueNext returns requests for the objects that may start now.
func (q Queue[T]) enqueueNext(ctx context.Context, r client.Reader, _ T) (requests []ctrl.Request) {
	all, err := q.candidates(ctx, r, q.Clock.Now())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the objects that may start")
		return nil
	}
	for _, name := range schedule.NextToStart(q.Limit, all) {
		requests = append(requests, ctrl.Request{NamespacedName: name})
	}
	return requests
}

// placeLeft passes the events after which another object may start.
func (q Queue[T]) placeLeft() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool {
			return q.Limit > 0 && q.placeOf(e.Object, q.Clock.Now()).isCandidate
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if q.Limit <= 0 {
				return false
			}
			now := q.Clock.Now()
			return q.placeOf(e.ObjectOld, now).isLeftFor(q.placeOf(e.ObjectNew, now))
		},
	}
}

// place says whether and since when an object runs or waits.
type place struct {
	isCandidate bool
	running     bool
	due         time.Time // when the run of a waiting object is due
}

// isLeftFor reports whether other objects may start because an object has changed from place p to another place: its
// run has ended, it waits for a later time, or it is not a candidate any more. If its run starts, other objects may not
// start, because they were behind it while it waited.
func (p place) isLeftFor(other place) bool {
	switch {
	case !p.isCandidate:
		return false
	case !other.isCandidate:
		return true
	case p.running:
		return !other.running
	}
	return !other.running && other.due.After(p.due)
}

func (q Queue[T]) placeOf(obj client.Object, now time.Time) place {
	typed, ok := obj.(T)
	if !ok {
		return place{}
	}
	c, ok := q.candidate(typed, now)
	switch {
	case !ok:
		return place{}
	case c.Running:
		return place{isCandidate: true, running: true}
	}
	return place{isCandidate: true, due: c.Due}
}

// candidates returns the candidates of all objects.
func (q Queue[T]) candidates(ctx context.Context, r client.Reader, now time.Time) (iter.Seq[schedule.Candidate], error) {
	all, err := reconcile.List[T](ctx, r, q.List.DeepCopyObject().(client.ObjectList))
	if err != nil {
		return nil, err
	}
	return func(yield func(schedule.Candidate) bool) {
		for obj := range all {
			if c, ok := q.candidate(obj, now); ok && !yield(c) {
				return
			}
		}
	}, nil
}

func (q Queue[T]) candidate(obj T, now time.Time) (c schedule.Candidate, ok bool) {
	if obj.GetDeletionTimestamp() != nil || record.PauseOf(obj).At(now).Paused {
		return schedule.Candidate{}, false
	}
	return q.Candidate(obj, now)
}
