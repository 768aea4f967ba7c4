package conditions_test

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

var (
	noon = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	one  = metav1.NewTime(noon.Add(time.Hour))
)

// ready returns a condition of type Ready.
func ready(status metav1.ConditionStatus, reason, message string, generation int64, at metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: at,
	}
}

// other returns a condition that does not matter to a test.
func other(conditionType string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: "True", Reason: "Fine", LastTransitionTime: noon}
}

// part returns one of the conditions from which a summary is computed.
func part(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

// deployed returns a condition of type Ready in the struct of a Deployment.
func deployed(status corev1.ConditionStatus, reason, message string, update, transition metav1.Time) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: "Ready", Status: status, Reason: reason, Message: message, LastUpdateTime: update, LastTransitionTime: transition,
	}
}

// light is a condition struct with few fields: no reason, no message, no times, and a status that cannot be Unknown.
type light struct {
	Name string
	On   bool
}

type lights struct{}

var errNoMiddle = errors.New("a light is on or off")

func (lights) Read(l light) metav1.Condition {
	c := metav1.Condition{Type: l.Name, Status: metav1.ConditionFalse}
	if l.On {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func (lights) Write(l light, to metav1.Condition, _ metav1.Time) light {
	l.Name, l.On = to.Type, to.Status == metav1.ConditionTrue
	return l
}

func (lights) Validate(c metav1.Condition) error {
	if c.Status == metav1.ConditionUnknown {
		return errNoMiddle
	}
	return nil
}

// event is a condition struct without a type. An API that keeps a history may have such a struct.
type event struct {
	Ready  bool
	Reason string
	At     metav1.Time
}

type events struct{}

func (events) Read(e event) metav1.Condition {
	status := metav1.ConditionFalse
	if e.Ready {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Status: status, Reason: e.Reason, LastTransitionTime: e.At}
}

func (events) Write(e event, to metav1.Condition, at metav1.Time) event {
	return event{Ready: to.Status == metav1.ConditionTrue, Reason: to.Reason, At: at}
}

func (events) Validate(metav1.Condition) error { return nil }

// deployment edits conditions of a struct that has two times and no observedGeneration.
var deployment = conditions.NewEditor[appsv1.DeploymentCondition](deploymentAdapter{})

type deploymentAdapter struct{}

func (deploymentAdapter) Read(c appsv1.DeploymentCondition) metav1.Condition {
	return metav1.Condition{
		Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
		Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
	}
}

func (deploymentAdapter) Write(c appsv1.DeploymentCondition, to metav1.Condition, at metav1.Time) appsv1.DeploymentCondition {
	c.Type, c.Status = appsv1.DeploymentConditionType(to.Type), corev1.ConditionStatus(to.Status)
	c.Reason, c.Message, c.LastTransitionTime, c.LastUpdateTime = to.Reason, to.Message, to.LastTransitionTime, at
	return c
}

func (deploymentAdapter) Validate(metav1.Condition) error { return nil }
