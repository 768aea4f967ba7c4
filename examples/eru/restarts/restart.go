// Package restarts restarts Deployments for Erus whose time has come: once for each time, only so many at once, and watched to
// the end.
package restarts

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// Restarts are those of an operator.
type Restarts struct {
	// Clock is clock.RealClock{}, but in tests.
	Clock clock.PassiveClock
	// AtOnce is how many Deployments may roll out at once because of us. 0 is no limit.
	AtOnce int
	// Lateness is told by how many seconds each restart comes after its place in the spread; nil if nobody wants to know.
	Lateness prometheus.Observer
}

const fieldManager = client.FieldOwner("eru-operator")

// Start restarts the Deployment for a time that is due, or records why it does not. The Deployment then shows that time, so a
// crash before the status is written restarts nothing twice.
func (r Restarts) Start(ctx context.Context, c client.Client, eru *eruv1.Eru, d *appsv1.Deployment, due schedule.Decision) error {
	hindrance, err := workload.CheckRestart(d, due.ScheduledTime, c.Scheme())
	replaces := hindrance.Reason == workload.BlockedRolloutInProgress && eru.Spec.ConcurrencyPolicy == eruv1.ReplaceConcurrent
	switch {
	case err != nil:
		return err
	case hindrance.Reason == workload.BlockedNotObserved:
		return reconcile.Wait("DeploymentNotObserved", time.Minute, "%s", hindrance.Message) // an event of it comes sooner
	case hindrance.Reason != "" && !replaces:
		return r.Skip(eru, due, hindrance.Reason, hindrance.Message)
	}
	switch may, err := r.mayStart(ctx, c, eru); {
	case err != nil:
		return err
	case !may:
		return reconcile.Wait("WaitingForTurn", time.Minute, "others restart or come first")
	}
	restarted, err := workload.Restart(ctx, c, d, due.ScheduledTime, fieldManager)
	if err != nil {
		return err
	}
	if restarted {
		if r.Lateness != nil {
			r.Lateness.Observe(r.Clock.Since(due.ScheduledTime.Add(eru.Spec.Offset(eru.UID))).Seconds())
		}
		tell(ctx, eru, d, corev1.EventTypeNormal, "Restarted", "The pods are replaced, as was due at "+timestamp(due.ScheduledTime))
	}
	eru.Status.Record(due)
	eru.Status.LastRestartTime = new(metav1.NewTime(r.Clock.Now().Truncate(time.Second)))
	eru.Status.LastRolloutResult = eruv1.RolloutInProgress
	return nil
}

// Skip records that a time that is due has no restart.
func (r Restarts) Skip(eru *eruv1.Eru, due schedule.Decision, reason, message string) error {
	eru.Status.Record(due)
	return eru.Tell(r.Clock.Now, eruv1.ConditionRestarted, "Skipped"+reason, timestamp(due.ScheduledTime)+": "+message)
}

// Watch records what came of the last restart, which is known in an hour at most.
func (r Restarts) Watch(ctx context.Context, c client.Client, eru *eruv1.Eru, d *appsv1.Deployment) error {
	status := &eru.Status
	if status.LastRolloutResult != eruv1.RolloutInProgress {
		return nil
	}
	if status.LastScheduleTime == nil || status.LastRestartTime == nil { // somebody has edited the status
		status.LastRolloutResult = eruv1.RolloutUnknown
		return nil
	}
	rollout, err := workload.ObserveRestart(d, status.LastScheduleTime.Time, r.Clock.Since(status.LastRestartTime.Time), c.Scheme())
	if err != nil || rollout.State == workload.RolloutInProgress {
		return err
	}
	status.LastRolloutResult = string(rollout.State)
	reason, message := "Rollout"+status.LastRolloutResult, timestamp(status.LastScheduleTime.Time)
	if rollout.State != workload.RolloutComplete {
		message += ": " + strings.TrimSpace(rollout.Message)
		tell(ctx, eru, d, corev1.EventTypeWarning, reason, "Restarted for "+message)
	}
	return eru.Tell(r.Clock.Now, eruv1.ConditionRestarted, reason, message)
}

// Abandon is for a Deployment that is gone.
func Abandon(eru *eruv1.Eru) {
	if eru.Status.LastRolloutResult == eruv1.RolloutInProgress {
		eru.Status.LastRolloutResult = eruv1.RolloutUnknown
	}
}

// tell emits an event on both.
func tell(ctx context.Context, eru *eruv1.Eru, d *appsv1.Deployment, eventType, reason, note string) {
	reconcile.Eventf(ctx, eru, eventType, reason, "%s", note)
	reconcile.Eventf(ctx, d, eventType, reason, "%s", note)
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
