package controller

import (
	"cmp"
	"fmt"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/schedule"
)

// created records that the Eru was created because a Deployment requested it.
func (s restartStep) created(eru *eruv1.Eru) error {
	return stop(eru, eruv1.PhaseStopped, eru.AddCondition(s.Clock.Now, eruv1.ConditionCreated, eruv1.ReasonCreated, eruv1.ReasonCreated))
}

// scheduled records the schedule that runs now.
func (s restartStep) scheduled(eru *eruv1.Eru, text string) error {
	message := fmt.Sprintf("%q in %s", text, cmp.Or(eru.Spec.TimeZone, "UTC"))
	return eru.AddCondition(s.Clock.Now, eruv1.ConditionScheduled, eruv1.ConditionScheduled, message)
}

// clockBehind records that nothing restarts, and until when, since the clock has not reached a time that is recorded.
func (s restartStep) clockBehind(eru *eruv1.Eru, due schedule.Decision) error {
	return eru.AddCondition(s.Clock.Now, eruv1.ConditionScheduled, eruv1.ReasonClockBehind, eru.Status.ClockBehindReason(due))
}

// stopped records why the schedule does not run.
func (s restartStep) stopped(eru *eruv1.Eru, reason, message string) error {
	return stop(eru, eruv1.PhaseStopped, eru.AddCondition(s.Clock.Now, eruv1.ConditionStopped, reason, message))
}

// stop sets the phase of an Eru whose schedule does not run, and returns err. When the schedule runs again, due times count
// from then.
func stop(eru *eruv1.Eru, phase string, err error) error {
	eru.Status.Stop()
	eru.Status.Phase = phase
	return err
}
