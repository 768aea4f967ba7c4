package v1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// The types of conditions.
const (
	ConditionCreated   = "Created"
	ConditionScheduled = "Scheduled"
	ConditionStopped   = "Stopped"
	ConditionRestarted = "Restarted"
	ConditionValid     = "Valid"
)

// ReasonCreated and the message are those of the first condition of an Eru that was asked for, in the published words.
const ReasonCreated = "create eru cr success,wait to start"

// ReasonComplete is that of a restart whose rollout has come to its end.
const ReasonComplete = "RolloutComplete"

// History is the conditions, to which whoever sets one appends. Now is the clock.
func (e *Eru) History(now func() time.Time) conditions.List {
	editor := conditions.NewEditor(eruConditions{}).WithClock(now)
	return editor.History(&e.Status.Conditions, cmp.Or(max(e.Spec.HistoryLimit, 0), DefaultHistoryLimit))
}

// Tell adds a condition. That of a restart is ready if it is complete, and others always.
func (e *Eru) Tell(now func() time.Time, conditionType, reason, message string) error {
	status := metav1.ConditionTrue
	if conditionType == ConditionRestarted && reason != ReasonComplete {
		status = metav1.ConditionFalse
	}
	_, _, err := e.History(now).Set(metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
	return err
}

// LastCondition is the newest, or an empty one.
func (e *Eru) LastCondition() EruCondition {
	if n := len(e.Status.Conditions); n > 0 {
		return e.Status.Conditions[n-1]
	}
	return EruCondition{}
}

type eruConditions struct{}

func (eruConditions) Read(c EruCondition) metav1.Condition {
	status := metav1.ConditionFalse
	if c.Ready {
		status = metav1.ConditionTrue
	}
	read := metav1.Condition{Type: c.Type, Status: status, Reason: c.Reason, Message: c.Message}
	if c.LastedTranslationTime != nil {
		read.LastTransitionTime = *c.LastedTranslationTime
	}
	return read
}

func (eruConditions) Write(c EruCondition, to metav1.Condition, at metav1.Time) EruCondition {
	c.Type, c.Ready, c.Reason, c.Message = to.Type, to.Status == metav1.ConditionTrue, to.Reason, to.Message
	c.LastedTranslationTime = &at
	return c
}

func (eruConditions) Validate(metav1.Condition) error { return nil } // its schema has no patterns: see ReasonCreated
