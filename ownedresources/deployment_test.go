package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewDeploymentLeavesWhatItIsGivenAlone(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	given := []corev1.Container{{Name: "a", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}}, {Name: "b"}}
	d := NewDeployment(owner, nil, given...)
	require.Nil(t, given[0].SecurityContext.Capabilities, "it may be part of the owner's spec, in the cache")
	require.Nil(t, given[1].SecurityContext)
	for _, c := range d.Spec.Template.Spec.Containers {
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
	}
	require.EqualValues(t, 7, *d.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser, "what was said stays")
}

func TestApplyKeepsRestartedAtAndInjectedContainers(t *testing.T) {
	w := newWorld(t)
	w.expect(t, w.deployment(), Created, "POST deployments")
	byHand(t, w, &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
	})
	want := w.deployment()
	want.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	w.expect(t, want, Applied, "GET deployments", "PATCH deployments", "PATCH deployments")
	var live appsv1.Deployment
	w.live(t, &live)
	require.Equal(t, "now", live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"])
	require.Len(t, live.Spec.Template.Spec.Containers, 2)
}
