package builtin

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	ingressKind = description{
		prototype: &networkingv1.Ingress{}, resource: "ingresses", hasStatus: true, hasGeneration: true,
		behaviour: behaviour{validate: forValidation(validateIngress)},
	}
	ingressClassKind = description{
		prototype: &networkingv1.IngressClass{}, resource: "ingressclasses", clusterScoped: true, hasGeneration: true,
		behaviour: behaviour{setDefaults: forObject(func(c *networkingv1.IngressClass) {
			if c.Spec.Parameters != nil {
				setIfNil(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
			}
		})},
	}
	networkPolicyKind = description{
		prototype: &networkingv1.NetworkPolicy{}, resource: "networkpolicies", hasGeneration: true,
		behaviour: behaviour{setDefaults: forObject(defaultNetworkPolicy)},
	}
	endpointSliceKind = description{
		prototype: &discoveryv1.EndpointSlice{}, resource: "endpointslices", hasGeneration: true,
		behaviour: behaviour{
			setDefaults: forObject(func(s *discoveryv1.EndpointSlice) {
				for i := range s.Ports {
					setIfNil(&s.Ports[i].Name, "")
					setIfNil(&s.Ports[i].Protocol, corev1.ProtocolTCP)
				}
			}),
			validateUpdate: forUpdateValidation(func(obj, live *discoveryv1.EndpointSlice) field.ErrorList {
				return immutable(obj.AddressType, live.AddressType, "addressType")
			}),
		},
	}
)

func validateIngress(ingress *networkingv1.Ingress) (errs field.ErrorList) {
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
		setIfNil(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}
