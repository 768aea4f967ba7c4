package builtin

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

var (
	serviceAddresses = netip.MustParsePrefix("10.96.0.0/12")
	nodePorts        = struct{ first, last int32 }{30000, 32767}
)

// allocateService allocates the addresses and node ports of a service. If an update leaves some out, it keeps the present ones. It chooses
// values by the service's name, so they do not depend on the order in which services are created, unless a value is in use already. All
// addresses are IPv4.
func allocateService(k *kind.Kind, services iter.Seq[client.Object], object, before client.Object) error {
	obj := object.(*corev1.Service)
	live, _ := before.(*corev1.Service)
	if live != nil {
		keepAllocated(obj, live)
	}
	normalizeClusterIPs(obj, live)
	if isExternalName(obj) {
		return nil
	}
	if err := allocateIPFamilies(k, obj, live); err != nil {
		return err
	}
	others := allocatedToOthers(services, obj)
	if err := allocateClusterIP(k, obj, live, others); err != nil {
		return err
	}
	return allocateNodePorts(k, obj, others)
}

// numberOf returns a number that depends only on the service's namespace and name.
func numberOf(obj *corev1.Service) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(client.ObjectKeyFromObject(obj).String())) // cannot fail
	return h.Sum32()
}

func keepAllocated(obj, live *corev1.Service) {
	if !isExternalName(live) && !isExternalName(obj) {
		setIfZero(&obj.Spec.ClusterIP, live.Spec.ClusterIP)
		if len(obj.Spec.ClusterIPs) == 0 {
			obj.Spec.ClusterIPs = slices.Clone(live.Spec.ClusterIPs)
		}
	}
	if allocatesNodePorts(live) && allocatesNodePorts(obj) {
		for i := range obj.Spec.Ports {
			keepNodePort(&obj.Spec.Ports[i], obj, live)
		}
	}
	if needsHealthCheckPort(live) && needsHealthCheckPort(obj) {
		setIfZero(&obj.Spec.HealthCheckNodePort, live.Spec.HealthCheckNodePort)
	}
}

// keepNodePort sets the node port that the port of the same name had before, if the request has none.
func keepNodePort(port *corev1.ServicePort, obj, live *corev1.Service) {
	i := slices.IndexFunc(live.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name })
	if i < 0 || port.NodePort != 0 {
		return
	}
	had := live.Spec.Ports[i].NodePort
	if !slices.ContainsFunc(obj.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == had }) {
		port.NodePort = had
	}
}

// normalizeClusterIPs makes the list clusterIPs agree with clusterIP. Older clients set or change only clusterIP.
func normalizeClusterIPs(obj, live *corev1.Service) {
	spec := &obj.Spec
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

func allocateIPFamilies(k *kind.Kind, obj, live *corev1.Service) error {
	spec := &obj.Spec
	selectorless := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil && live != nil {
		spec.IPFamilyPolicy = live.Spec.IPFamilyPolicy
	}
	policy := corev1.IPFamilyPolicySingleStack
	if selectorless { // without a selector, its endpoints may be of either family
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	setIfNil(&spec.IPFamilyPolicy, policy)
	if errs := validateClusterIPs(obj); len(errs) > 0 {
		return invalid(k, obj.Name, errs...)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if !selectorless {
		return validateSingleStack(k, obj)
	}
	if len(spec.IPFamilies) < 2 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
	}
	return nil
}

// validateSingleStack rejects a service that needs IPv6: the cluster has IPv4 only.
func validateSingleStack(k *kind.Kind, obj *corev1.Service) error {
	var errs field.ErrorList
	if *obj.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(specPath.Child("ipFamilyPolicy"), obj.Spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range obj.Spec.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return invalid(k, obj.Name, errs...)
}

// allocated has the addresses and node ports that other services use.
type allocated struct {
	addresses sets.Set[string]
	ports     sets.Set[int32]
}

func allocatedToOthers(services iter.Seq[client.Object], except *corev1.Service) allocated {
	t := allocated{addresses: sets.Set[string]{}, ports: sets.Set[int32]{}}
	for object := range services {
		if client.ObjectKeyFromObject(object) == client.ObjectKeyFromObject(except) {
			continue
		}
		other := object.(*corev1.Service)
		t.addresses.Insert(other.Spec.ClusterIPs...)
		for _, port := range other.Spec.Ports {
			t.ports.Insert(port.NodePort)
		}
		t.ports.Insert(other.Spec.HealthCheckNodePort)
	}
	return t
}

func allocateClusterIP(k *kind.Kind, obj, live *corev1.Service, t allocated) error {
	spec := &obj.Spec
	switch {
	case spec.ClusterIP == corev1.ClusterIPNone:
		return nil
	case spec.ClusterIP != "":
		if live != nil && slices.Contains(live.Spec.ClusterIPs, spec.ClusterIP) || live != nil && !isExternalName(live) {
			return nil // it is the address of the live object, or validateServiceUpdate rejects it
		}
		return validateRequestedIP(k, obj, t)
	case live != nil && !isExternalName(live):
		return nil // the address is removed, which validateServiceUpdate rejects
	}
	first := numberOf(obj) % usableAddresses
	for i := range uint32(usableAddresses) {
		if address := serviceAddress((first + i) % usableAddresses); !t.addresses.Has(address) {
			spec.ClusterIP, spec.ClusterIPs = address, []string{address}
			return nil
		}
	}
	return fmt.Errorf("failed to allocate a serviceIP: range is full")
}

// usableAddresses is the number of addresses in the range that services can get: all except the first, the last, and the second, which
// belongs to the API server.
const usableAddresses = 1<<20 - 3

// serviceAddress returns the n-th usable address.
func serviceAddress(n uint32) string {
	var bytes [4]byte
	first := serviceAddresses.Addr().As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(first[:])+2+n)
	return netip.AddrFrom4(bytes).String()
}

// validateRequestedIP validates the address that a client asks for.
func validateRequestedIP(k *kind.Kind, obj *corev1.Service, t allocated) error {
	reason := ""
	address, err := netip.ParseAddr(obj.Spec.ClusterIP)
	switch {
	case err != nil || !serviceAddresses.Contains(address):
		reason = fmt.Sprintf("failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s",
			obj.Spec.ClusterIP, obj.Spec.ClusterIP, serviceAddresses)
	case t.addresses.Has(obj.Spec.ClusterIP):
		reason = fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", obj.Spec.ClusterIP)
	default:
		return nil
	}
	return invalid(k, obj.Name,
		field.Invalid(specPath.Child("clusterIPs"), obj.Spec.ClusterIPs, reason))
}

func allocateNodePorts(k *kind.Kind, obj *corev1.Service, t allocated) error {
	spec := &obj.Spec
	byPort := map[int32]int32{} // TCP and UDP of the same port share a node port
	for i := range spec.Ports {
		port := &spec.Ports[i]
		switch {
		case port.NodePort != 0 && hasNodePorts(obj):
			if reason := nodePortProblem(port.NodePort, t); reason != "" {
				return invalid(k, obj.Name,
					field.Invalid(specPath.Child("ports").Index(i).Child("nodePort"), port.NodePort, reason))
			}
		case port.NodePort == 0 && allocatesNodePorts(obj):
			port.NodePort = byPort[port.Port]
			if port.NodePort == 0 {
				port.NodePort = t.freeNodePort(obj)
			}
		}
		byPort[port.Port] = port.NodePort
	}
	if needsHealthCheckPort(obj) && spec.HealthCheckNodePort == 0 {
		spec.HealthCheckNodePort = t.freeNodePort(obj)
	}
	return nil
}

func nodePortProblem(port int32, t allocated) string {
	switch {
	case port < nodePorts.first || port > nodePorts.last:
		return fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", nodePorts.first, nodePorts.last)
	case t.ports.Has(port):
		return "provided port is already allocated"
	}
	return ""
}

// freeNodePort returns a node port that no service uses. It returns 0 if none is free, and validation then rejects the service.
func (t allocated) freeNodePort(obj *corev1.Service) int32 {
	count := nodePorts.last - nodePorts.first + 1
	first := int32(numberOf(obj) % uint32(count))
	for i := range count {
		port := nodePorts.first + (first+i)%count
		if !t.ports.Has(port) && !slices.ContainsFunc(obj.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port }) {
			return port
		}
	}
	return 0
}

func invalid(k *kind.Kind, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.GVK.GroupKind(), name, errs)
}
