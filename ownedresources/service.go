package ownedresources

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewService gives a Service named like its owner, to be edited like any struct. It selects the
// pods of a [NewDeployment] with the same owner and selector. Its name must be a DNS label, so at
// most 63 characters without dots, unlike that of its owner; the API server refuses others.
func NewService(owner client.Object, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	if selector == nil {
		selector = defaultSelector(owner)
	}
	return &corev1.Service{
		ObjectMeta: metadata(owner),
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: ports},
	}
}
