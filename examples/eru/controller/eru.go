package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/schedule"
)

// restartStep is the step that restarts the Deployment of an Eru on its schedule.
type restartStep struct{ restarts.Restarts }

func (s restartStep) Reconcile(ctx context.Context, c client.Client, eru *eruv1.Eru) error {
	if err := s.initialize(ctx, c, eru); err != nil {
		return err
	}
	var d appsv1.Deployment
	err := c.Get(ctx, eru.Deployments()[0], &d, client.UnsafeDisableDeepCopy)
	if err == nil {
		_, err = reconcile.PatchOwnerReference(ctx, c, eru, &d)
	}
	switch {
	case apierrors.IsNotFound(err):
		restarts.StopObserving(eru)
		return stop(eru, eruv1.PhaseStopped, reconcile.Stalled("DeploymentNotFound", fmt.Errorf("there is no Deployment %s: create it", eru.DeploymentName())))
	case errors.Is(err, reconcile.ErrOwnerRecreated):
		restarts.StopObserving(eru)
		return stop(eru, eruv1.PhaseStopped, reconcile.Stalled("DeploymentRecreated", err))
	case err != nil:
		return err
	}
	if err := s.ObserveRollout(ctx, c, eru, &d); err != nil {
		return err
	}
	err = s.runSchedule(ctx, c, eru, &d)
	if eru.Status.LastRolloutResult == eruv1.RolloutInProgress {
		err = errors.Join(err, reconcile.Wait("RolloutInProgress", time.Minute, "waits for the rollout")) // its events come sooner
	}
	return err
}

// initialize does what needs no Deployment: the label, the annotations, and the first condition.
func (s restartStep) initialize(ctx context.Context, c client.Client, eru *eruv1.Eru) (err error) {
	if eru.IsLegacy() {
		_, err = reconcile.PatchLabels(ctx, c, eru, map[string]string{eruv1.LabelCreatedBy: eruv1.CreatedBy})
	}
	if err == nil && eru.HasStatus() { // before that, the annotations would make it a legacy one
		_, err = reconcile.PatchAnnotations(ctx, c, eru, eru.SpecAnnotations())
	}
	if err == nil && eru.IsRequested() && len(eru.Status.Conditions) == 0 {
		err = s.created(eru)
	}
	return err
}

// runSchedule starts or skips a restart that is due, and waits for the next one. For an Eru that is disabled or no longer
// requested, it records that the schedule does not run.
func (s restartStep) runSchedule(ctx context.Context, c client.Client, eru *eruv1.Eru, d *appsv1.Deployment) error {
	last := eru.LastCondition()
	switch {
	case eru.IsRequested() && d.Annotations[eruv1.AnnotationEru] != "true":
		return s.stopped(eru, "AnnotationRemoved", "the Deployment does not ask for it any more")
	case !eru.Spec.Enabled && last.Type == eruv1.ConditionCreated:
		return nil
	case !eru.Spec.Enabled:
		return s.stopped(eru, "Disabled", "spec.enabled is false")
	}
	now, since, text := s.Clock.Now(), eru.Status.ScheduleSince, cmp.Or(eru.Spec.Schedule, eruv1.DefaultSchedule)
	due, err := eru.Status.Decide(now, eru.UID, text, eru.Spec.Options)
	if err == nil {
		err = schedule.CheckInterval(text, s.MinInterval)
	}
	if err != nil {
		return stop(eru, eruv1.PhaseFailure, reconcile.Stalled("", err))
	}
	eru.Status.Phase = eruv1.PhaseRunning
	isNew := !eru.Status.ScheduleSince.Equal(since) || last.Type != eruv1.ConditionScheduled && last.Type != eruv1.ConditionRestarted
	if due.Verdict != schedule.ClockBehind && last.Reason == eruv1.ReasonClockBehind { // also if a restart is due now
		isNew, err = false, s.scheduled(eru, text)
	}
	switch {
	case err != nil:
	case due.Verdict == schedule.ClockBehind:
		err = s.clockBehind(eru, due)
	case due.Verdict == schedule.Start:
		err = s.Start(ctx, c, eru, d, due)
	case due.Verdict == schedule.TooLate:
		err = s.Skip(eru, due, "TooLate", due.TooLateReason())
	case isNew:
		err = s.scheduled(eru, text)
	}
	return cmp.Or(err, reconcile.Wait(eruv1.ConditionScheduled, due.RequeueAfter(now), "waits for its time"))
}
