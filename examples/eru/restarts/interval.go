package restarts

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// slack is how much sooner than the minimum interval after the last start a restart may start. Without it, an Eru whose schedule has
// that interval would be late for ever after one restart that started a little late.
const slack = 10 * time.Second

// reasonDelayed is the reason of the condition Restarted while the minimum interval delays a restart.
const reasonDelayed = "DelayedByMinInterval"

// restart replaces the pods for a due time, as workload.Restart does, and records in the same patch that the restart starts
// now. The due time alone does not show that: with a spread, after a blackout window or with an edited status, a restart starts
// hours after its due time. The patch carries the resource version of d, so of two restarts that both read d only one succeeds.
func (r Restarts) restart(ctx context.Context, c client.Client, d *appsv1.Deployment, due time.Time) error {
	restarted := d.DeepCopy()
	metav1.SetMetaDataAnnotation(&restarted.ObjectMeta, eruv1.AnnotationLastRestart, timestamp(r.Clock.Now()))
	metav1.SetMetaDataAnnotation(&restarted.Spec.Template.ObjectMeta, workload.AnnotationRestartedAt, timestamp(due))
	patch := client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, restarted, patch, fieldManager); err != nil {
		return fmt.Errorf("restart Deployment %s: %w", client.ObjectKeyFromObject(d), err)
	}
	return nil
}

// nextAllowed returns the time from which the minimum interval allows a restart of the Deployment. It returns the zero time if
// no restart is known. It reads the Deployment only: whoever may write Erus may not write there.
//
// A restart by hand counts too. A value that is not a time is ignored, and so is a time in the future, which is not the time of a
// restart: it would delay all restarts until then.
func (r Restarts) nextAllowed(d *appsv1.Deployment, now time.Time) time.Time {
	var next time.Time
	if last, known := workload.RestartedAt(withoutFutureRestart(d, now)); known {
		next = last.Add(r.MinInterval)
	}
	started, err := time.Parse(time.RFC3339, d.Annotations[eruv1.AnnotationLastRestart])
	if err == nil && !started.After(now) {
		if after := started.Add(r.MinInterval - min(slack, r.MinInterval/2)); after.After(next) {
			next = after
		}
	}
	return next
}

// withoutFutureRestart returns d. If its restartedAt is in the future, it returns a copy without restartedAt: otherwise each
// restart until then would be skipped as done already.
func withoutFutureRestart(d *appsv1.Deployment, now time.Time) *appsv1.Deployment {
	if at, ok := workload.RestartedAt(d); !ok || !at.After(now) {
		return d
	}
	d = d.DeepCopy()
	delete(d.Spec.Template.Annotations, workload.AnnotationRestartedAt)
	return d
}

// delay makes a restart that is due wait until the given time, and records why, once for each due time. NextScheduleTime becomes that
// time less the offset, as after a blackout window. So the Eru leaves the queue and does not keep other Deployments waiting.
func (r Restarts) delay(eru *eruv1.Eru, due schedule.Decision, until time.Time) error {
	eru.Status.NextScheduleTime = new(metav1.NewTime(until.Add(-eru.Spec.Offset(eru.UID)).Truncate(time.Second)))
	message := fmt.Sprintf("%s: the Deployment was restarted less than %v before, the operator's --min-interval; the restart waits until that has passed",
		timestamp(due.ScheduledTime), r.MinInterval)
	if !slices.ContainsFunc(eru.Status.Conditions, func(c eruv1.EruCondition) bool { return c.Reason == reasonDelayed && c.Message == message }) {
		if err := eru.AddCondition(r.Clock.Now, eruv1.ConditionRestarted, reasonDelayed, message); err != nil {
			return err
		}
	}
	after := schedule.Decision{RequeueAt: until}.RequeueAfter(r.Clock.Now())
	return reconcile.Wait(reasonDelayed, after, "%s", message)
}
