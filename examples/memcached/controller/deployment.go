package controller

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

const (
	portName = "memcached"
	port     = 11211
	user     = 11211 // user memcached of the official image; runAsNonRoot accepts only a number
)

// deployment returns the Deployment of a Memcached. Its name, selector and pod labels are the same as in the tutorial.
func deployment(m *cachev1.Memcached) *appsv1.Deployment {
	d := ownedresources.NewDeployment(m, podLabels(m), corev1.Container{
		Name:  "memcached",
		Image: cmp.Or(m.Spec.Image, "memcached:1.6-alpine"),
		Command: []string{
			"memcached", fmt.Sprintf("-m=%d", memoryMB(m)), "-o", "modern", "-v", "-c", fmt.Sprint(cmp.Or(m.Spec.MaxConnections, 1024)),
		},
		Ports:          []corev1.ContainerPort{{Name: portName, ContainerPort: port}},
		Resources:      resources(m),
		ReadinessProbe: tcpProbe(),
		LivenessProbe:  tcpProbe(),
	})
	d.Spec.Replicas = new(m.Spec.Size)
	d.Spec.Template.Annotations = map[string]string{annotationMemcached: m.Name}
	d.Spec.Template.Spec.SecurityContext.RunAsUser = new(int64(user))
	return d
}

// memoryMB returns the whole megabytes of 1024 * 1024 bytes of a Memcached's memory, since memcached takes no fraction.
func memoryMB(m *cachev1.Memcached) int64 {
	if m.Spec.Memory == nil {
		return 64
	}
	return m.Spec.Memory.Value() >> 20
}

// resources returns the resources of a container. The default leaves memcached 32 MiB for connections and bookkeeping.
func resources(m *cachev1.Memcached) corev1.ResourceRequirements {
	if m.Spec.Resources != nil {
		return m.Spec.Resources.Core()
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", memoryMB(m)+32)),
	}}
}

func tcpProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}}}
}
