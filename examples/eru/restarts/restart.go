// Package restarts restarts the Deployments of Erus. Each due time leads to one restart at most, the number of concurrent
// rollouts is limited, and each rollout is observed until its end.
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

// Restarts restarts Deployments. It holds the settings of the operator.
type Restarts struct {
	// Clock is clock.RealClock{}, except in tests.
	Clock clock.PassiveClock
	// MaxConcurrent is the maximum number of Deployments that roll out at a time because of this operator. 0 means no limit.
	MaxConcurrent int
	// MinInterval is the shortest interval that a schedule may have, and the shortest time between two restarts of a Deployment,
	// however many Erus it has. 0 means no limit.
	MinInterval time.Duration
	// Lateness observes how many seconds after its place in the spread each restart starts. It may be nil.
	Lateness prometheus.Observer
}

// NewLateness returns the metric for [Restarts.Lateness]. The caller registers it.
func NewLateness() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "eru_restart_lateness_seconds", Help: "How many seconds after its place in the spread a restart starts.",
		Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
	})
}

const fieldManager = client.FieldOwner("eru-operator")

// Start restarts the Deployment for a due time, or records why it does not. The due time is written to the Deployment: after
// a crash before the status is written, it shows that this restart is done.
func (r Restarts) Start(ctx context.Context, c client.Client, eru *eruv1.Eru, d *appsv1.Deployment, due schedule.Decision) error {
	now := r.Clock.Now()
	d = withoutFutureRestart(d, now)
	last, restarted := workload.RestartedAt(d)
	isDone := restarted && last.Equal(due.ScheduledTime)
	blocker, err := workload.CheckRestart(d, due.ScheduledTime, c.Scheme())
	replace := blocker.Reason == workload.BlockedRolloutInProgress && eru.Spec.ConcurrencyPolicy == eruv1.ReplaceConcurrent
	switch {
	case err != nil:
		return err
	case blocker.Reason == workload.BlockedNotObserved:
		return reconcile.Wait("DeploymentNotObserved", time.Minute, "%s", blocker.Message) // its next event comes sooner
	case blocker.Reason != "" && !replace:
		return r.Skip(eru, due, blocker.Reason, blocker.Message)
	}
	if until := r.nextAllowed(d, now); until.After(now) && !isDone {
		return r.delay(eru, due, until)
	}
	switch may, err := r.Queue().MayStart(ctx, c, eru); {
	case err != nil:
		return err
	case !may:
		return reconcile.Wait("WaitingForTurn", time.Minute, "others restart or come first")
	}
	if !isDone {
		if err := r.restart(ctx, c, d, due.ScheduledTime); err != nil {
			return err
		}
		if r.Lateness != nil {
			r.Lateness.Observe(r.Clock.Since(due.ScheduledTime.Add(eru.Spec.Offset(eru.UID))).Seconds())
		}
		emitEvent(ctx, eru, d, corev1.EventTypeNormal, "Restarted", "The pods are replaced, as was due at "+timestamp(due.ScheduledTime))
	}
	eru.Status.Record(due)
	eru.Status.LastRestartTime = new(metav1.NewTime(r.Clock.Now().Truncate(time.Second)))
	eru.Status.LastRolloutResult = eruv1.RolloutInProgress
	return nil
}

// Skip records why a due time passes without a restart.
func (r Restarts) Skip(eru *eruv1.Eru, due schedule.Decision, reason, message string) error {
	eru.Status.Record(due)
	return eru.AddCondition(r.Clock.Now, eruv1.ConditionRestarted, "Skipped"+reason, timestamp(due.ScheduledTime)+": "+message)
}

// ObserveRollout records the result of the last restart once it is known, which takes an hour at most.
func (r Restarts) ObserveRollout(ctx context.Context, c client.Client, eru *eruv1.Eru, d *appsv1.Deployment) error {
	status := &eru.Status
	if status.LastRolloutResult != eruv1.RolloutInProgress {
		return nil
	}
	if status.LastScheduleTime == nil || status.LastRestartTime == nil { // somebody has edited the status
		status.LastRolloutResult = eruv1.RolloutUnknown
		return nil
	}
	now := metav1.NewTime(r.Clock.Now().Truncate(time.Second))
	if now.Before(status.LastRestartTime) { // the clock was ahead: the end would be waited for until then, and keep others waiting
		status.LastRestartTime = &now
	}
	rollout, err := workload.ObserveRestart(d, status.LastScheduleTime.Time, r.Clock.Since(status.LastRestartTime.Time), c.Scheme())
	if err != nil || rollout.State == workload.RolloutInProgress {
		return err
	}
	status.LastRolloutResult = string(rollout.State)
	reason, message := "Rollout"+status.LastRolloutResult, timestamp(status.LastScheduleTime.Time)
	if rollout.State != workload.RolloutComplete {
		message += ": " + strings.TrimSpace(rollout.Message)
		emitEvent(ctx, eru, d, corev1.EventTypeWarning, reason, "Restarted for "+message)
	}
	return eru.AddCondition(r.Clock.Now, eruv1.ConditionRestarted, reason, message)
}

// StopObserving records that the end of the rollout will not be observed, because the Deployment is gone.
func StopObserving(eru *eruv1.Eru) {
	if eru.Status.LastRolloutResult == eruv1.RolloutInProgress {
		eru.Status.LastRolloutResult = eruv1.RolloutUnknown
	}
}

// emitEvent emits an event on the Eru and on the Deployment.
func emitEvent(ctx context.Context, eru *eruv1.Eru, d *appsv1.Deployment, eventType, reason, note string) {
	reconcile.Eventf(ctx, eru, eventType, reason, "%s", note)
	reconcile.Eventf(ctx, d, eventType, reason, "%s", note)
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
