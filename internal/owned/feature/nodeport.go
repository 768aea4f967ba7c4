package feature

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// ChoosesPort reports whether the answer to a dry run has a node port that neither the live object nor the desired object has. In a dry run
// the API server does not reserve node ports: it answers with a port outside of its range.
func ChoosesPort(d *owned.Desired, live, answer client.Object) bool {
	if d.Kind.GVK != corev1.SchemeGroupVersion.WithKind("Service") {
		return false
	}
	known := append(nodePorts(live), nodePorts(d.Object)...)
	return slices.ContainsFunc(nodePorts(answer), func(port int32) bool { return !slices.Contains(known, port) })
}

func nodePorts(obj client.Object) []int32 {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	service := corev1.Service{}
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &service) != nil {
		return nil
	}
	ports := []int32{0, service.Spec.HealthCheckNodePort}
	for _, port := range service.Spec.Ports {
		ports = append(ports, port.NodePort)
	}
	return ports
}
