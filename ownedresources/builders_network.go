package ownedresources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewService returns a Service with the name and namespace of its owner. It is a plain struct: edit it before it is
// applied. It selects the pods of a [NewDeployment] with the same owner and selector.
//
// The name of a Service must be a DNS label: at most 63 characters, without dots. The owner's name may be longer, and
// the API server then refuses the Service: set another name. [ValidateName] and [ValidateServicePorts] find what
// the API server would refuse before a request is sent.
func NewService(owner client.Object, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: ObjectMeta(owner),
		Spec:       corev1.ServiceSpec{Selector: selectorOrDefault(owner, selector), Ports: slices.Clone(ports)},
	}
}

// ContainerPorts returns the ports that a container must open for the ports of a Service:
//
//   - If targetPort is a number, the container port has that number.
//   - If targetPort is a name, the container port has that name and the number of the Service's port.
//   - If targetPort is unset, the container port has the number of the Service's port, as the API server reads it.
//
// The protocol is copied. If several ports have the same number and protocol, or the same name, only the first is
// returned, since the API server refuses a container with both. An unset protocol is TCP.
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

// NewIngress returns an Ingress with the name and namespace of its owner. It is a plain struct: edit it before it is
// applied.
//
// It routes all paths of each host to the backend. Without hosts it routes the paths of all hosts. The path is "/" and
// its PathType is Prefix. If the backend has no name, it gets the owner's name, which a [NewService] of the same owner
// has too. The backend's port is the name or the number of a port of that Service; the API server refuses an Ingress
// with both, and one with neither.
//
// IngressClassName is unset: the default class of the cluster serves the Ingress, if there is one. No TLS is set.
func NewIngress(owner client.Object, backend networkingv1.IngressServiceBackend, hosts ...string) *networkingv1.Ingress {
	backend.Name = cmp.Or(backend.Name, owner.GetName())
	if len(hosts) == 0 {
		hosts = []string{""} // a rule without a host is for all hosts
	}
	ingress := &networkingv1.Ingress{ObjectMeta: ObjectMeta(owner)}
	for _, host := range hosts {
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: new(networkingv1.PathTypePrefix),
					Backend: networkingv1.IngressBackend{Service: new(backend)},
				}},
			}},
		})
	}
	return ingress
}

// NewNetworkPolicy returns a NetworkPolicy with the name and namespace of its owner. It is a plain struct: edit it before
// it is applied. It selects the pods of a [NewDeployment], [NewStatefulSet] or [NewDaemonSet] with the same owner and
// selector, and lets in what one of the rules allows. Without rules it lets in nothing. An empty rule allows everything.
//
// PolicyTypes is Ingress only, so what the pods may connect to is not limited. To limit it, set Egress and append
// networkingv1.PolicyTypeEgress to PolicyTypes: Egress alone is ignored. Its rules must allow DNS.
//
// PolicyTypes is set, because the API server computes it only while it is unset, and then keeps it. Otherwise rules of
// Egress that are added later might be ignored. After the last rule of Egress is removed, the pods might be unable to
// connect to anything.
func NewNetworkPolicy(
	owner client.Object, selector map[string]string, ingress ...networkingv1.NetworkPolicyIngressRule,
) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: ObjectMeta(owner),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *labelSelector(owner, selector),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     slices.Clone(ingress),
		},
	}
}
