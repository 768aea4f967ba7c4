package conditions_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/conditions"
)

// deploymentConditions is for objects whose status embeds appsv1.DeploymentStatus.
type deploymentConditions struct{}

func (deploymentConditions) Read(c appsv1.DeploymentCondition) metav1.Condition {
	return metav1.Condition{
		Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
		Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
	}
}

func (deploymentConditions) Write(
	c appsv1.DeploymentCondition, to metav1.Condition, at metav1.Time,
) appsv1.DeploymentCondition {
	c.Type, c.Status = appsv1.DeploymentConditionType(to.Type), corev1.ConditionStatus(to.Status)
	c.Reason, c.Message, c.LastTransitionTime, c.LastUpdateTime = to.Reason, to.Message, to.LastTransitionTime, at
	return c
}

func (deploymentConditions) Validate(metav1.Condition) error { return nil } // its schema has no patterns

func ExampleNewEditor() {
	clock := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	editor := conditions.NewEditor(deploymentConditions{}).WithClock(clock)

	var status appsv1.DeploymentStatus
	for range 2 {
		_, changed, err := editor.Set(&status.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionTrue, Reason: "MinimumReplicasAvailable", ObservedGeneration: 4,
		})
		fmt.Println(changed, err)
	}
	fmt.Println(status.Conditions[0].LastUpdateTime.UTC())
	fmt.Println(editor.Summarize(status.Conditions).Status)
	// Output:
	// true <nil>
	// false <nil>
	// 2026-03-01 12:00:00 +0000 UTC
	// True
}
