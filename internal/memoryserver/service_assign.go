package memoryserver

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	serviceAddresses = netip.MustParsePrefix("10.96.0.0/12")
	nodePorts        = struct{ first, last int32 }{30000, 32767}
)

// assignService gives a service its addresses and node ports. What an update leaves out stays as it
// was. The server gives the lowest that are free, and has one family of addresses, IPv4.
func assignService(t *table, object, before client.Object) error {
	made := object.(*corev1.Service)
	live, _ := before.(*corev1.Service)
	if live != nil {
		keepAssigned(made, live)
	}
	alignAddresses(made, live)
	if aliased(made) {
		return nil
	}
	if err := assignFamilies(t.kind, made, live); err != nil {
		return err
	}
	others := takenByServices(t, made)
	if err := assignAddress(t.kind, made, live, others); err != nil {
		return err
	}
	return assignNodePorts(t.kind, made, others)
}

func keepAssigned(made, live *corev1.Service) {
	if !aliased(live) && !aliased(made) {
		unset(&made.Spec.ClusterIP, live.Spec.ClusterIP)
		if len(made.Spec.ClusterIPs) == 0 {
			made.Spec.ClusterIPs = slices.Clone(live.Spec.ClusterIPs)
		}
	}
	if getsNodePorts(live) && getsNodePorts(made) {
		for i := range made.Spec.Ports {
			keepNodePort(&made.Spec.Ports[i], made, live)
		}
	}
	if getsHealthPort(live) && getsHealthPort(made) {
		unset(&made.Spec.HealthCheckNodePort, live.Spec.HealthCheckNodePort)
	}
}

// keepNodePort finds what a port without a node port had before, by its name.
func keepNodePort(port *corev1.ServicePort, made, live *corev1.Service) {
	i := slices.IndexFunc(live.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name })
	if i < 0 || port.NodePort != 0 {
		return
	}
	had := live.Spec.Ports[i].NodePort
	if !slices.ContainsFunc(made.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == had }) {
		port.NodePort = had
	}
}

// alignAddresses makes the list of addresses follow the single one, which older clients write.
func alignAddresses(made, live *corev1.Service) {
	spec := &made.Spec
	switch {
	case live == nil:
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
	case spec.ClusterIP == live.Spec.ClusterIP || !slices.Equal(spec.ClusterIPs, live.Spec.ClusterIPs):
	case live.Spec.ClusterIP != "" && spec.ClusterIP == "":
		spec.ClusterIPs = nil
	default:
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

func assignFamilies(k *kind, made, live *corev1.Service) error {
	spec := &made.Spec
	selectorless := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil && live != nil {
		spec.IPFamilyPolicy = live.Spec.IPFamilyPolicy
	}
	policy := corev1.IPFamilyPolicySingleStack
	if selectorless { // its endpoints may be of either family
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	absent(&spec.IPFamilyPolicy, policy)
	if errs := checkAddresses(made); len(errs) > 0 {
		return invalid(k, made.Name, errs...)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if !selectorless {
		return refuseDualStack(k, made)
	}
	if len(spec.IPFamilies) < 2 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
	}
	return nil
}

// refuseDualStack says that the cluster has IPv4 only.
func refuseDualStack(k *kind, made *corev1.Service) error {
	var errs field.ErrorList
	if *made.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilyPolicy"), made.Spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range made.Spec.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return invalid(k, made.Name, errs...)
}

// taken is what other services have.
type taken struct {
	addresses sets.Set[string]
	ports     sets.Set[int32]
}

func takenByServices(services *table, except *corev1.Service) taken {
	t := taken{addresses: sets.Set[string]{}, ports: sets.Set[int32]{}}
	for _, r := range services.order {
		v := r.latest()
		if v == nil || r.key == client.ObjectKeyFromObject(except) {
			continue
		}
		other := v.object.(*corev1.Service)
		t.addresses.Insert(other.Spec.ClusterIPs...)
		for _, port := range other.Spec.Ports {
			t.ports.Insert(port.NodePort)
		}
		t.ports.Insert(other.Spec.HealthCheckNodePort)
	}
	return t
}

func assignAddress(k *kind, made, live *corev1.Service, t taken) error {
	spec := &made.Spec
	switch {
	case spec.ClusterIP == corev1.ClusterIPNone:
		return nil
	case spec.ClusterIP != "":
		if live != nil && slices.Contains(live.Spec.ClusterIPs, spec.ClusterIP) || live != nil && !aliased(live) {
			return nil // it is the live one, or the comparison refuses it
		}
		return refuseAddress(k, made, t)
	case live != nil && !aliased(live):
		return nil // released, which the comparison refuses
	}
	for address := serviceAddresses.Addr().Next().Next(); serviceAddresses.Contains(address); address = address.Next() {
		if !t.addresses.Has(address.String()) {
			spec.ClusterIP, spec.ClusterIPs = address.String(), []string{address.String()}
			return nil
		}
	}
	return fmt.Errorf("failed to allocate a serviceIP: range is full")
}

// refuseAddress checks an address that a client wishes for.
func refuseAddress(k *kind, made *corev1.Service, t taken) error {
	reason := ""
	address, err := netip.ParseAddr(made.Spec.ClusterIP)
	switch {
	case err != nil || !serviceAddresses.Contains(address):
		reason = fmt.Sprintf("failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s",
			made.Spec.ClusterIP, made.Spec.ClusterIP, serviceAddresses)
	case t.addresses.Has(made.Spec.ClusterIP):
		reason = fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", made.Spec.ClusterIP)
	default:
		return nil
	}
	return invalid(k, made.Name,
		field.Invalid(specPath.Child("clusterIPs"), made.Spec.ClusterIPs, reason))
}

func assignNodePorts(k *kind, made *corev1.Service, t taken) error {
	spec := &made.Spec
	byPort := map[int32]int32{} // TCP and UDP of one port share a node port
	for i := range spec.Ports {
		port := &spec.Ports[i]
		switch {
		case port.NodePort != 0 && onNodes(made):
			if reason := refusePort(port.NodePort, t); reason != "" {
				return invalid(k, made.Name,
					field.Invalid(specPath.Child("ports").Index(i).Child("nodePort"), port.NodePort, reason))
			}
		case port.NodePort == 0 && getsNodePorts(made):
			port.NodePort = byPort[port.Port]
			if port.NodePort == 0 {
				port.NodePort = t.freePort(spec.Ports)
			}
		}
		byPort[port.Port] = port.NodePort
	}
	if getsHealthPort(made) && spec.HealthCheckNodePort == 0 {
		spec.HealthCheckNodePort = t.freePort(spec.Ports)
	}
	return nil
}

func refusePort(port int32, t taken) string {
	switch {
	case port < nodePorts.first || port > nodePorts.last:
		return fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", nodePorts.first, nodePorts.last)
	case t.ports.Has(port):
		return "provided port is already allocated"
	}
	return ""
}

// freePort is 0 if there is none, which validation refuses.
func (t taken) freePort(own []corev1.ServicePort) int32 {
	for port := nodePorts.first; port <= nodePorts.last; port++ {
		if !t.ports.Has(port) && !slices.ContainsFunc(own, func(p corev1.ServicePort) bool { return p.NodePort == port }) {
			return port
		}
	}
	return 0
}
