package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

const (
	serverPort  = "redis"
	metricsPort = "metrics"

	serverPortNumber  = 6379
	metricsPortNumber = 9121
)

// service returns the Service of a Cache. It is headless: the pods have names, and a client chooses the primary to write.
func service(c *storev1alpha1.Cache) *corev1.Service {
	s := ownedresources.NewService(c, nil,
		corev1.ServicePort{Name: serverPort, Port: serverPortNumber, TargetPort: intstr.FromString(serverPort)},
		corev1.ServicePort{Name: metricsPort, Port: metricsPortNumber, TargetPort: intstr.FromString(metricsPort)})
	s.Spec.ClusterIP = corev1.ClusterIPNone
	return s
}

// primary returns the host name of the pod that takes writes.
func primary(c *storev1alpha1.Cache) string {
	return fmt.Sprintf("%s-0.%s.%s.svc", c.Name, c.Name, c.Namespace)
}
