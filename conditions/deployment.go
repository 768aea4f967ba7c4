package conditions

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deployment returns the Editor for appsv1.DeploymentCondition: for the status of a Deployment, and for an API whose status
// embeds appsv1.DeploymentStatus. The clock is time.Now; see [Editor.WithClock].
//
// LastUpdateTime is the time of the last change of a condition, as the Deployment controller sets it. The struct has no
// observedGeneration, so the editor drops it, and a difference in it is not a change. Types and reasons may have any
// form, and a reason may be empty: the API has no patterns for them.
//
// In the status of a Deployment, its controller sets Available, Progressing and ReplicaFailure, and changes their order.
func Deployment() Editor[appsv1.DeploymentCondition] { return deployment }

var deployment = NewEditor[appsv1.DeploymentCondition](deploymentAdapter{})

type deploymentAdapter struct{}

var _ Adapter[appsv1.DeploymentCondition] = deploymentAdapter{}

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
