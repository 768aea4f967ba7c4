package v1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// Types of conditions.
const (
	ConditionCreated   = "Created"
	ConditionScheduled = "Scheduled"
	ConditionStopped   = "Stopped"
	ConditionRestarted = "Restarted"
	ConditionValid     = "Valid"
)

// ReasonCreated is the reason and the message of the first condition of an Eru that was requested, in the article's words.
const ReasonCreated = "create eru cr success,wait to start"

// ReasonComplete is the reason of the condition Restarted when the rollout is complete.
const ReasonComplete = "RolloutComplete"

// ReasonClockBehind is the reason of the condition Scheduled while the clock is behind a time that is recorded in the status.
const ReasonClockBehind = "ClockBehind"

// History returns the conditions for editing: each one that is set is appended. now returns the time of a condition.
func (e *Eru) History(now func() time.Time) conditions.List {
	editor := conditions.NewEditor(eruConditions{}).WithClock(now)
	return editor.History(&e.Status.Conditions, cmp.Or(max(e.Spec.HistoryLimit, 0), DefaultHistoryLimit))
}

// AddCondition appends a condition. It is ready, unless it is Restarted with a reason other than [ReasonComplete], or its reason
// is [ReasonClockBehind].
func (e *Eru) AddCondition(now func() time.Time, conditionType, reason, message string) error {
	status := metav1.ConditionTrue
	if conditionType == ConditionRestarted && reason != ReasonComplete || reason == ReasonClockBehind {
		status = metav1.ConditionFalse
	}
	_, _, err := e.History(now).Set(metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
	return err
}

// LastCondition returns the newest condition, or the zero value if there is none.
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

func (eruConditions) Validate(metav1.Condition) error { return nil } // the schema has no pattern for reasons: ReasonCreated has spaces
