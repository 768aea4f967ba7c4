package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestNewDeploymentDoesNotChangeItsArguments(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	given := []corev1.Container{{Name: "a", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))}}, {Name: "b"}}
	d := NewDeployment(owner, nil, given...)
	require.Nil(t, given[0].SecurityContext.Capabilities, "it may be part of the owner's spec, in the cache")
	require.Nil(t, given[1].SecurityContext)
	for _, c := range d.Spec.Template.Spec.Containers {
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
	}
	require.EqualValues(t, 7, *d.Spec.Template.Spec.Containers[0].SecurityContext.RunAsUser, "a field that is set is kept")
}

func TestContainerPorts(t *testing.T) {
	tests := map[string]struct {
		reason string
		ports  []corev1.ServicePort
		want   []corev1.ContainerPort
	}{
		"Number": {
			reason: "the container listens on the target",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
			want:   []corev1.ContainerPort{{ContainerPort: 80}},
		},
		"Name": {
			reason: "the name of a target is looked up among the container's ports",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		},
		"Unset": {
			reason: "the API server sets the target to the Service's port",
			ports:  []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
		"TwoWithOneTarget": {
			reason: "server-side apply refuses a container port that occurs twice; an unset protocol is TCP",
			ports: []corev1.ServicePort{
				{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Port: 443, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
			},
			want: []corev1.ContainerPort{{ContainerPort: 8080}},
		},
		"TwoWithOneName": {
			reason: "the API server refuses a name that occurs twice",
			ports:  []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}, {Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		},
		"BothProtocols": {
			reason: "the same number with another protocol is another port",
			ports:  []corev1.ServicePort{{Port: 53}, {Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ContainerPorts(tc.ports...)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestApplyKeepsRestartedAtAndInjectedContainers(t *testing.T) {
	w := newTestEnv(t)
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

func TestApplyKeepsClusterIPAndNodePort(t *testing.T) {
	w := newTestEnv(t)
	want := w.service()
	want.Spec.Type = corev1.ServiceTypeNodePort
	w.expect(t, want, Created, "POST services")
	var before, after corev1.Service
	w.live(t, &before)
	want.Spec.Ports[0].TargetPort.IntVal = 8080
	want.Labels["x"] = "y"
	w.expect(t, want, Applied, "GET services", "PATCH services", "PATCH services")
	w.live(t, &after)
	require.Equal(t, before.Spec.ClusterIP, after.Spec.ClusterIP)
	require.Equal(t, before.Spec.Ports[0].NodePort, after.Spec.Ports[0].NodePort)
	byHand(t, w, &after, func(s *corev1.Service) { s.Spec.Selector["also"] = "this" })
	w.expect(t, want, Applied, "PATCH services")
	w.live(t, &after)
	require.Equal(t, map[string]string{"app": "web"}, after.Spec.Selector, "a Service's selector is atomic: what others add is removed")
}
