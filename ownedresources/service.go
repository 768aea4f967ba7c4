package ownedresources

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ContainerPorts gives the ports that a container has to open for a Service, whatever form their
// targetPort has: a number is the container's port; a name is that of the container's port, which
// is the Service's; without one it is the Service's. The protocol is kept. Of several for the same
// port and protocol, or of the same name, the first counts.
func ContainerPorts(ports ...corev1.ServicePort) []corev1.ContainerPort {
	type key struct {
		port     int32
		protocol corev1.Protocol
	}
	seen, names := map[key]bool{}, map[string]bool{}
	var opened []corev1.ContainerPort
	for _, p := range ports {
		c := corev1.ContainerPort{ContainerPort: p.Port, Protocol: p.Protocol}
		switch {
		case p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "":
			c.Name = p.TargetPort.StrVal
		case p.TargetPort.IntVal != 0:
			c.ContainerPort = p.TargetPort.IntVal
		}
		is := key{c.ContainerPort, cmp.Or(c.Protocol, corev1.ProtocolTCP)}
		if seen[is] || names[c.Name] {
			continue
		}
		seen[is], names[c.Name] = true, c.Name != ""
		opened = append(opened, c)
	}
	return opened
}

// NewService gives a Service named like its owner, to be edited like any struct. It selects the
// pods of a [NewDeployment] with the same owner and selector. Its name must be a DNS label, so at
// most 63 characters without dots, unlike that of its owner; the API server refuses others.
func NewService(owner client.Object, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	if selector == nil {
		selector = defaultSelector(owner)
	}
	return &corev1.Service{
		ObjectMeta: metadata(owner),
		Spec:       corev1.ServiceSpec{Selector: maps.Clone(selector), Ports: slices.Clone(ports)},
	}
}
