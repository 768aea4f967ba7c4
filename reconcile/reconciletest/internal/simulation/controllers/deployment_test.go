package controllers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func TestDeployments(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		d := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("registry.invalid/web:1"),
		}}
		c.create(d)
		c.settle()
		assert.Zero(t, load(c, d).Status.ReadyReplicas)
		for name, pod := range c.pods() {
			assert.Equal(t, "ImagePullBackOff", pod.Status.ContainerStatuses[0].State.Waiting.Reason, name)
		}

		change(c, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
		c.settle()
		assert.EqualValues(t, 2, load(c, d).Status.ReadyReplicas, "pods that cannot start are replaced")

		for _, pod := range c.pods() {
			changeStatus(c, pod, func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse })
			break
		}
		c.settle()
		assert.EqualValues(t, 1, load(c, d).Status.ReadyReplicas, "what a scenario writes to the status of a pod stays")
	}, controllers.Deployments)
}
