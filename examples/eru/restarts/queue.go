package restarts

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/reconcile/startqueue"
	"github.com/opblocks/opblocks/schedule"
)

// Queue limits how many Deployments roll out at a time. It is derived from the statuses of all Erus, so that it survives a
// restart of the operator.
func (r Restarts) Queue() startqueue.Queue[*eruv1.Eru] {
	return startqueue.Queue[*eruv1.Eru]{Limit: r.MaxConcurrent, Clock: r.Clock, List: &eruv1.EruList{}, Candidate: candidate}
}

// candidate returns an Eru's place in the queue; ok is false if it has none. An Eru that cannot restart anything, because it
// is invalid, has none: it would keep the others waiting.
func candidate(eru *eruv1.Eru, now time.Time) (c schedule.Candidate, ok bool) {
	running := eru.Status.LastRolloutResult == eruv1.RolloutInProgress
	c, ok = eru.Status.Candidate(now, client.ObjectKeyFromObject(eru), running, eru.Spec.Offset(eru.UID))
	return c, ok && (running || eru.LastCondition().Type != eruv1.ConditionValid)
}
