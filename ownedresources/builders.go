package ownedresources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewDeployment returns a Deployment with the name and namespace of its owner. It is a plain struct: edit it before it
// is applied.
//
// The selector, which is immutable once the Deployment exists, and the labels of the pods are both a copy of selector.
// If selector is nil, they are the labels app.kubernetes.io/name and app.kubernetes.io/instance of [Labels]. The
// metadata of the Deployment has all of Labels. The pods have those of the selector only, so a change of other labels
// rolls no pods.
// Replicas are unset: the API server sets one, or an autoscaler decides.
//
// Pods and containers meet the Pod Security Standard "restricted"
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). The containers' own security contexts are
// kept where they are set. An image whose user is not a number also needs RunAsUser. For an image that cannot meet the
// standard, set SecurityContext of the pod and of the containers to nil.
//
// NewDeployment does not change containers.
func NewDeployment(owner client.Object, selector map[string]string, containers ...corev1.Container) *appsv1.Deployment {
	if selector == nil {
		selector = defaultSelector(owner)
	}
	containers = slices.Clone(containers) // they may be part of the owner's spec, which is in the cache
	for i := range containers {
		containers[i].SecurityContext = restricted(containers[i].SecurityContext)
	}
	return &appsv1.Deployment{
		ObjectMeta: metadata(owner),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(selector)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(selector)},
				Spec: corev1.PodSpec{
					Containers: containers,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   new(true),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
}

// restricted returns a copy of a container's security context with the fields set that the standard "restricted" asks
// of each container. The others can be set for the whole pod.
func restricted(given *corev1.SecurityContext) *corev1.SecurityContext {
	c := given.DeepCopy()
	if c == nil {
		c = &corev1.SecurityContext{}
	}
	if c.AllowPrivilegeEscalation == nil {
		c.AllowPrivilegeEscalation = new(false)
	}
	if c.Capabilities == nil {
		c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return c
}

// NewService returns a Service with the name and namespace of its owner. It is a plain struct: edit it before it is
// applied. It selects the pods of a [NewDeployment] with the same owner and selector.
//
// The name of a Service must be a DNS label: at most 63 characters, without dots. The owner's name may be longer, and
// the API server then refuses the Service: set another name.
func NewService(owner client.Object, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	if selector == nil {
		selector = defaultSelector(owner)
	}
	return &corev1.Service{
		ObjectMeta: metadata(owner),
		Spec:       corev1.ServiceSpec{Selector: maps.Clone(selector), Ports: slices.Clone(ports)},
	}
}

// ContainerPorts returns the ports that a container must open for the ports of a Service:
//
//   - If targetPort is a number, the container port has that number.
//   - If targetPort is a name, the container port has that name and the number of the Service's port.
//   - If targetPort is unset, the container port has the number of the Service's port, as the API server reads it.
//
// The protocol is copied. Of several ports with the same number and protocol, or with the same name, only the first is
// returned, since the API server refuses such a container. An unset protocol is TCP.
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

// The labels that Kubernetes recommends,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// metadata returns the metadata of a child that has its owner's name.
func metadata(owner client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName(), Labels: Labels(owner)}
}

// Labels returns the recommended labels for the children of an owner, in a new map:
//
//   - app.kubernetes.io/name is the owner's kind in lower case;
//   - app.kubernetes.io/instance is the owner's name, shortened by [LabelValue];
//   - app.kubernetes.io/managed-by is the owner's kind in lower case with the suffix "-operator".
//
// [NewDeployment] and [NewService] set them.
func Labels(owner client.Object) map[string]string {
	labels := defaultSelector(owner)
	labels[labelManagedBy] = labels[labelName] + "-operator"
	return labels
}

// defaultSelector returns the labels that never change while the owner exists.
func defaultSelector(owner client.Object) map[string]string {
	return map[string]string{labelName: kindName(owner), labelInstance: LabelValue(owner.GetName())}
}

// kindName returns the owner's kind in lower case. It is the name of the Go type, so no scheme is needed.
func kindName(owner client.Object) string {
	return strings.ToLower(reflect.TypeOf(owner).Elem().Name())
}

// LabelValue returns a label value for the name of an object. A name may have 253 characters, a label value only 63. A
// name that fits is returned as it is; a longer one is cut and ends in a hash of the whole name, so that different names
// have different values.
func LabelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:5])
	return name[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}
