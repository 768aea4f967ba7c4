package builtin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var serviceKind = description{
	prototype: &corev1.Service{}, resource: "services", hasStatus: true, createOnUpdate: true,
	behaviour: behaviour{
		validateName:           validation.NameIsDNS1035Label,
		setDefaults:            forObject(defaultService),
		allocate:               allocateService,
		prepareForCreate:       forObject(hideInternalTrafficPolicy),
		prepareForUpdate:       forUpdate(dropTypeDependentFields),
		prepareForStatusUpdate: forUpdate(func(obj, _ *corev1.Service) { hideInternalTrafficPolicy(obj) }),
		validateStatus:         forValidation(validateServiceStatus),
		validate:               forValidation(validateService),
		validateUpdate:         forUpdateValidation(validateServiceUpdate),
	},
}

func defaultService(service *corev1.Service) {
	spec := &service.Spec
	setIfZero(&spec.Type, corev1.ServiceTypeClusterIP)
	setIfZero(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		setIfNil(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setIfNil(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setIfNil(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		setIfZero(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if externallyAccessible(service) {
		setIfZero(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		setIfNil(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setIfNil(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range service.Status.LoadBalancer.Ingress {
			if ingress := &service.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				setIfNil(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// hideInternalTrafficPolicy removes the field internalTrafficPolicy from ExternalName services. The real server sets its default by
// mistake, and does not return it.
func hideInternalTrafficPolicy(s *corev1.Service) {
	if isExternalName(s) {
		s.Spec.InternalTrafficPolicy = nil
	}
}

// externallyAccessible reports whether a service can be reached from outside of the cluster.
func externallyAccessible(s *corev1.Service) bool {
	return hasNodePorts(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// hasNodePorts reports whether a service of this type can have ports on the nodes.
func hasNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// allocatesNodePorts reports whether the server allocates node ports for the service.
func allocatesNodePorts(s *corev1.Service) bool {
	return hasNodePorts(s) && (s.Spec.Type != corev1.ServiceTypeLoadBalancer || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true))
}

// needsHealthCheckPort reports whether the service needs a port at which load balancers ask a node if it has the
// service's pods.
func needsHealthCheckPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func isExternalName(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

func isHeadless(s *corev1.Service) bool {
	return !isExternalName(s) && len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// dropTypeDependentFields is called if the type of a service changes. It removes the values that the server allocated for the old type, if
// the new type does not have them. If the client has also changed a value, it stays.
func dropTypeDependentFields(obj, live *corev1.Service) {
	spec, was := &obj.Spec, &live.Spec
	if isExternalName(obj) && !isExternalName(live) {
		if spec.ClusterIP == was.ClusterIP && slices.Equal(spec.ClusterIPs, was.ClusterIPs) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(spec.IPFamilies, was.IPFamilies) {
			spec.IPFamilies = nil
		}
		if ptr.Equal(spec.IPFamilyPolicy, was.IPFamilyPolicy) {
			spec.IPFamilyPolicy = nil
		}
	}
	if hasNodePorts(live) && !hasNodePorts(obj) && requestsNoNewNodePort(obj, live) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if needsHealthCheckPort(live) && !needsHealthCheckPort(obj) && spec.HealthCheckNodePort == was.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && spec.Type != corev1.ServiceTypeLoadBalancer {
		if was.AllocateLoadBalancerNodePorts != nil && ptr.Equal(spec.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(spec.LoadBalancerClass, was.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
	}
	if externallyAccessible(live) && !externallyAccessible(obj) && spec.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	hideInternalTrafficPolicy(obj)
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		obj.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// requestsNoNewNodePort reports whether the service had each node port in the request before.
func requestsNoNewNodePort(obj, live *corev1.Service) bool {
	for _, port := range obj.Spec.Ports {
		if port.NodePort != 0 && !slices.ContainsFunc(live.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port.NodePort }) {
			return false
		}
	}
	return true
}
