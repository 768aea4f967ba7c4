package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// Conditions edits the conditions of an App, which are of type appsv1.DeploymentCondition. LastUpdateTime is the time of the last change
// of a condition, as the Deployment controller sets it. The struct has no observedGeneration, so a difference in it is not a change. Types
// and reasons may have any form, and a reason may be empty: the API has no patterns for them.
var Conditions = conditions.NewEditor[appsv1.DeploymentCondition](deploymentAdapter{})

// deploymentAdapter implements [conditions.Adapter].
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
