package builtin

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	serviceTypes = sets.New(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	affinities   = sets.New(corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
)

func validateService(s *corev1.Service) (errs field.ErrorList) {
	spec := &s.Spec
	if len(spec.Ports) == 0 && !isHeadless(s) && !isExternalName(s) {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	if hasNodePorts(s) && isHeadless(s) {
		errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(0), spec.ClusterIPs[0], "may not be set to 'None' for "+string(spec.Type)+" services"))
	}
	if isExternalName(s) {
		errs = append(errs, validateExternalName(spec)...)
	}
	errs = append(errs, validateServicePorts(s)...)
	errs = append(errs, metav1validation.ValidateLabels(spec.Selector, specPath.Child("selector"))...)
	if !affinities.Has(spec.SessionAffinity) {
		errs = append(errs, field.NotSupported(specPath.Child("sessionAffinity"), spec.SessionAffinity, sets.List(affinities)))
	}
	if !isExternalName(s) {
		errs = append(errs, validateClusterIPs(s)...)
	}
	if !serviceTypes.Has(spec.Type) {
		errs = append(errs, field.NotSupported(specPath.Child("type"), spec.Type, sets.List(serviceTypes)))
	}
	return append(errs, validateTrafficPolicies(s)...)
}

func validateExternalName(spec *corev1.ServiceSpec) (errs field.ErrorList) {
	if len(spec.ClusterIPs) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("clusterIPs"), "may not be set for ExternalName services"))
	}
	if len(spec.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("ipFamilies"), "may not be set for ExternalName services"))
	}
	if spec.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(specPath.Child("ipFamilyPolicy"), "may not be set for ExternalName services"))
	}
	if spec.ExternalName == "" {
		return append(errs, field.Required(specPath.Child("externalName"), ""))
	}
	for _, message := range utilvalidation.IsDNS1123Subdomain(spec.ExternalName) {
		errs = append(errs, field.Invalid(specPath.Child("externalName"), spec.ExternalName, message))
	}
	return errs
}

func validateServicePorts(s *corev1.Service) (errs field.ErrorList) {
	names, numbers := sets.Set[string]{}, sets.Set[corev1.ServicePort]{}
	for i, port := range s.Spec.Ports {
		at := specPath.Child("ports").Index(i)
		if port.Name != "" || len(s.Spec.Ports) > 1 {
			errs = append(errs, validateLabelName(port.Name, at.Child("name"))...)
			if port.Name != "" && names.Has(port.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, validatePort(port.Port, at.Child("port"))...)
		errs = append(errs, validateProtocol(port.Protocol, at.Child("protocol"))...)
		errs = append(errs, validateTargetPort(port.TargetPort, at.Child("targetPort"))...)
		if s.Spec.Type == corev1.ServiceTypeClusterIP && port.NodePort != 0 {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if node := (corev1.ServicePort{Protocol: port.Protocol, NodePort: port.NodePort}); port.NodePort != 0 {
			if numbers.Has(node) {
				errs = append(errs, field.Duplicate(at.Child("nodePort"), port.NodePort))
			}
			numbers.Insert(node)
		}
		key := corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}
		if numbers.Has(key) {
			errs = append(errs, field.Duplicate(at, key))
		}
		numbers.Insert(key)
	}
	return errs
}

func validateTargetPort(target intstr.IntOrString, path *field.Path) (errs field.ErrorList) {
	if target.Type == intstr.Int {
		for _, message := range utilvalidation.IsValidPortNum(target.IntValue()) {
			errs = append(errs, field.Invalid(path, target.IntValue(), message))
		}
		return errs
	}
	for _, message := range utilvalidation.IsValidPortName(target.StrVal) {
		errs = append(errs, field.Invalid(path, target.StrVal, message))
	}
	return errs
}

func validateClusterIPs(s *corev1.Service) (errs field.ErrorList) {
	spec, path := &s.Spec, specPath.Child("clusterIPs")
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		errs = append(errs, field.Required(path, ""))
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	for i, address := range spec.ClusterIPs {
		if i == 0 && address == corev1.ClusterIPNone {
			continue
		}
		if _, err := netip.ParseAddr(address); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		}
	}
	return errs
}

func validateTrafficPolicies(s *corev1.Service) (errs field.ErrorList) {
	spec := &s.Spec
	if spec.AllocateLoadBalancerNodePorts != nil && spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(specPath.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.ExternalTrafficPolicy != "" && !externallyAccessible(s) {
		errs = append(errs, field.Invalid(specPath.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if spec.HealthCheckNodePort != 0 && !needsHealthCheckPort(s) {
		errs = append(errs, field.Invalid(specPath.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	return errs
}

func validateServiceStatus(s *corev1.Service) field.ErrorList {
	if len(s.Status.LoadBalancer.Ingress) == 0 || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"), "may only be used when `spec.type` is 'LoadBalancer'")}
}

// validateServiceUpdate rejects a change of a service's address. ExternalName services have no address.
func validateServiceUpdate(obj, live *corev1.Service) (errs field.ErrorList) {
	if isExternalName(obj) || isExternalName(live) || isHeadless(obj) && isHeadless(live) {
		return nil
	}
	path := specPath.Child("clusterIPs").Index(0)
	switch now, was := obj.Spec.ClusterIPs, live.Spec.ClusterIPs; {
	case len(was) > 0 && len(now) == 0:
		errs = append(errs, field.Invalid(path, now, "primary clusterIP can not be unset"))
	case len(was) > 0 && now[0] != was[0]:
		errs = append(errs, field.Invalid(path, now, "may not change once set"))
	}
	families, before := obj.Spec.IPFamilies, live.Spec.IPFamilies
	if isHeadless(obj) == isHeadless(live) && len(families) > 0 && len(before) > 0 && families[0] != before[0] {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(0), families, "may not change once set"))
	}
	return errs
}
