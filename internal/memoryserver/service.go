package memoryserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var serviceKind = builtInKind{
	like: &corev1.Service{}, resource: "services", status: true, createOnUpdate: true,
	behaviour: behaviour{
		validName:   validation.NameIsDNS1035Label,
		defaults:    on(defaultService),
		assign:      assignService,
		create:      on(hidePolicy),
		update:      onBoth(dropUnused),
		status:      onBoth(func(made, _ *corev1.Service) { hidePolicy(made) }),
		checkStatus: checked(checkServiceStatus),
		check:       checked(checkService),
		compare:     compared(compareServices),
	},
}

func defaultService(service *corev1.Service) {
	spec := &service.Spec
	unset(&spec.Type, corev1.ServiceTypeClusterIP)
	unset(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		absent(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		absent(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		absent(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		unset(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if external(service) {
		unset(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		absent(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		absent(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range service.Status.LoadBalancer.Ingress {
			if ingress := &service.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				absent(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// hidePolicy drops a default that was given to aliases by mistake: the server does not show it.
func hidePolicy(s *corev1.Service) {
	if aliased(s) {
		s.Spec.InternalTrafficPolicy = nil
	}
}

// external reports whether a service is reached from outside of the cluster.
func external(s *corev1.Service) bool {
	return onNodes(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// onNodes reports whether a service's type has ports on the nodes.
func onNodes(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// getsNodePorts reports whether the server gives it such ports.
func getsNodePorts(s *corev1.Service) bool {
	return onNodes(s) && (s.Spec.Type != corev1.ServiceTypeLoadBalancer || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true))
}

// getsHealthPort reports whether a load balancer asks each node whether it has the service's pods.
func getsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func aliased(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

func headless(s *corev1.Service) bool {
	return !aliased(s) && len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// dropUnused clears what the server gave a service and its new type does not have, unless the client
// changed it too.
func dropUnused(made, live *corev1.Service) {
	spec, was := &made.Spec, &live.Spec
	if aliased(made) && !aliased(live) {
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
	if onNodes(live) && !onNodes(made) && keepsNodePorts(made, live) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if getsHealthPort(live) && !getsHealthPort(made) && spec.HealthCheckNodePort == was.HealthCheckNodePort {
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
	if external(live) && !external(made) && spec.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	hidePolicy(made)
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		made.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// keepsNodePorts reports whether a client has asked for no node port that was not there before.
func keepsNodePorts(made, live *corev1.Service) bool {
	for _, port := range made.Spec.Ports {
		if port.NodePort != 0 && !slices.ContainsFunc(live.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port.NodePort }) {
			return false
		}
	}
	return true
}
