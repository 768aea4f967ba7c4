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

// mayStart says whether it is an Eru's turn. The queue is in the statuses, so it outlives the operator.
func (r Restarts) mayStart(ctx context.Context, c client.Client, eru *eruv1.Eru) (bool, error) {
	if r.AtOnce <= 0 {
		return true, nil
	}
	all, err := reconcile.List[*eruv1.Eru](ctx, c, &eruv1.EruList{})
	if err != nil {
		return false, err
	}
	now := r.Clock.Now()
	me, _ := turn(eru, now)
	return schedule.MayStart(r.AtOnce, me, turns(all, now)), nil
}

// NextInLine returns the requests of the Erus that may start now. It is for a watch of the Erus whose [Claim] changes.
func (r Restarts) NextInLine(ctx context.Context, c client.Reader, _ *eruv1.Eru) (requests []ctrl.Request) {
	if r.AtOnce <= 0 { // none waits for another one
		return nil
	}
	all, err := reconcile.List[*eruv1.Eru](ctx, c, &eruv1.EruList{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Erus that may start")
		return nil
	}
	for _, name := range schedule.NextToStart(r.AtOnce, turns(all, r.Clock.Now())) {
		requests = append(requests, ctrl.Request{NamespacedName: name})
	}
	return requests
}

// Claim changes when an Eru begins or ends to restart, leaves a time out, or becomes invalid.
func Claim(eru *eruv1.Eru) [3]string {
	last := ""
	if t := eru.Status.LastScheduleTime; t != nil {
		last = timestamp(t.Time)
	}
	return [3]string{eru.Status.LastRolloutResult, last, eru.LastCondition().Type}
}

func turns(all iter.Seq[*eruv1.Eru], now time.Time) iter.Seq[schedule.Candidate] {
	return func(yield func(schedule.Candidate) bool) {
		for eru := range all {
			if t, ok := turn(eru, now); ok && !yield(t) {
				return
			}
		}
	}
}

// turn is an Eru's claim, if it has one. One that cannot restart anything, because it is not valid or paused or about to go,
// has none: it would keep the others waiting.
func turn(eru *eruv1.Eru, now time.Time) (t schedule.Candidate, ok bool) {
	running := eru.Status.LastRolloutResult == eruv1.RolloutInProgress
	t, ok = eru.Status.Candidate(now, client.ObjectKeyFromObject(eru), running, eru.Spec.Offset(eru.UID))
	paused, _ := predicates.IsPaused(eru, now)
	return t, ok && !paused && eru.DeletionTimestamp == nil && (running || eru.LastCondition().Type != eruv1.ConditionValid)
}
