package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestContainerPorts(t *testing.T) {
	tests := map[string]struct {
		reason string
		ports  []corev1.ServicePort
		want   []corev1.ContainerPort
	}{
		"number": {
			reason: "the container listens on the target",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
			want:   []corev1.ContainerPort{{ContainerPort: 80}},
		},
		"name": {
			reason: "a name is looked up among the container's ports, so it has to be one",
			ports:  []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		},
		"unset": {
			reason: "the API server takes the Service's port for the target",
			ports:  []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
		"two to one target": {
			reason: "a container port given twice is refused by server-side apply; an unset protocol is TCP",
			ports: []corev1.ServicePort{
				{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Port: 443, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
			},
			want: []corev1.ContainerPort{{ContainerPort: 8080}},
		},
		"two to one name": {
			reason: "a name given twice is refused",
			ports:  []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}, {Port: 8080, TargetPort: intstr.FromString("http")}},
			want:   []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		},
		"both protocols": {
			reason: "the same number is another port with another protocol",
			ports:  []corev1.ServicePort{{Port: 53}, {Port: 53, Protocol: corev1.ProtocolUDP}},
			want:   []corev1.ContainerPort{{ContainerPort: 53}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ContainerPorts(tc.ports...)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestServiceKeepsWhatTheServerGave(t *testing.T) {
	w := newWorld(t)
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
	require.Equal(t, map[string]string{"app": "web"}, after.Spec.Selector, "a selector is ours as a whole")
}
