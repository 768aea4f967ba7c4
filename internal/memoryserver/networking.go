package memoryserver

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	ingressKind = builtInKind{
		like: &networkingv1.Ingress{}, resource: "ingresses", status: true, counted: true,
		behaviour: behaviour{check: checked(checkIngress)},
	}
	ingressClassKind = builtInKind{
		like: &networkingv1.IngressClass{}, resource: "ingressclasses", cluster: true, counted: true,
		behaviour: behaviour{defaults: on(func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				absent(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		})},
	}
	networkPolicyKind = builtInKind{
		like: &networkingv1.NetworkPolicy{}, resource: "networkpolicies", counted: true,
		behaviour: behaviour{defaults: on(defaultNetworkPolicy)},
	}
	endpointSliceKind = builtInKind{
		like: &discoveryv1.EndpointSlice{}, resource: "endpointslices", counted: true,
		behaviour: behaviour{
			defaults: on(func(s *discoveryv1.EndpointSlice) {
				for i := range s.Ports {
					absent(&s.Ports[i].Name, "")
					absent(&s.Ports[i].Protocol, corev1.ProtocolTCP)
				}
			}),
			compare: compared(func(made, live *discoveryv1.EndpointSlice) field.ErrorList {
				return immutable(made.AddressType, live.AddressType, "addressType")
			}),
		},
	}
)

func checkIngress(ingress *networkingv1.Ingress) (errs field.ErrorList) {
	if len(ingress.Spec.Rules) == 0 && ingress.Spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(specPath, ingress.Spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	for i, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j, p := range rule.HTTP.Paths {
			if p.PathType == nil {
				errs = append(errs, field.Required(specPath.Child("rules").Index(i).Child("http", "paths").Index(j).Child("pathType"), "pathType must be specified"))
			}
		}
	}
	return errs
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for _, rule := range p.Spec.Ingress {
		defaultPolicyPorts(rule.Ports)
	}
	for _, rule := range p.Spec.Egress {
		defaultPolicyPorts(rule.Ports)
	}
}

func defaultPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		absent(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}
