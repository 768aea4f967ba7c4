package restarts

import (
	"context"
	"iter"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/predicates"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// mayStart reports whether an Eru may restart its Deployment now. The queue is derived from the statuses of all Erus, so
// that it survives a restart of the operator.
func (r Restarts) mayStart(ctx context.Context, c client.Client, eru *eruv1.Eru) (bool, error) {
	if r.MaxConcurrent <= 0 {
		return true, nil
	}
	all, err := reconcile.List[*eruv1.Eru](ctx, c, &eruv1.EruList{})
	if err != nil {
		return false, err
	}
	now := r.Clock.Now()
	own, _ := candidate(eru, now)
	return schedule.MayStart(r.MaxConcurrent, own, candidates(all, now)), nil
}

// EnqueueNext returns requests for the Erus that may start now. It is the mapping function of a watch on Erus whose
// [QueueState] changes.
func (r Restarts) EnqueueNext(ctx context.Context, c client.Reader, _ *eruv1.Eru) (requests []ctrl.Request) {
	if r.MaxConcurrent <= 0 { // no Eru waits for another one
		return nil
	}
	all, err := reconcile.List[*eruv1.Eru](ctx, c, &eruv1.EruList{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Erus that may start")
		return nil
	}
	for _, name := range schedule.NextToStart(r.MaxConcurrent, candidates(all, r.Clock.Now())) {
		requests = append(requests, ctrl.Request{NamespacedName: name})
	}
	return requests
}

// QueueState returns a value that changes when a restart starts, ends or is skipped, and when an Eru becomes invalid: then
// another Eru may be next.
func QueueState(eru *eruv1.Eru) [3]string {
	last := ""
	if t := eru.Status.LastScheduleTime; t != nil {
		last = timestamp(t.Time)
	}
	return [3]string{eru.Status.LastRolloutResult, last, eru.LastCondition().Type}
}

func candidates(all iter.Seq[*eruv1.Eru], now time.Time) iter.Seq[schedule.Candidate] {
	return func(yield func(schedule.Candidate) bool) {
		for eru := range all {
			if c, ok := candidate(eru, now); ok && !yield(c) {
				return
			}
		}
	}
}

// candidate returns an Eru's place in the queue; ok is false if it has none. An Eru that cannot restart anything, because it
// is invalid, paused or being deleted, has none: it would keep the others waiting.
func candidate(eru *eruv1.Eru, now time.Time) (c schedule.Candidate, ok bool) {
	running := eru.Status.LastRolloutResult == eruv1.RolloutInProgress
	c, ok = eru.Status.Candidate(now, client.ObjectKeyFromObject(eru), running, eru.Spec.Offset(eru.UID))
	paused, _ := predicates.IsPaused(eru, now)
	return c, ok && !paused && eru.DeletionTimestamp == nil && (running || eru.LastCondition().Type != eruv1.ConditionValid)
}
