package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
)

// service returns the Service of a Memcached. It is headless: clients of memcached choose the pod of a key themselves. Not
// every name of a Memcached is valid for a Service; a Memcached with another name works without one.
func service(m *cachev1.Memcached) (*corev1.Service, error) {
	if errs := ownedresources.ValidateName[corev1.Service](m.Name, field.NewPath("metadata", "name")); len(errs) > 0 {
		return nil, reconcile.Stalled("InvalidServiceName", fmt.Errorf("no Service: %w", errs.ToAggregate()))
	}
	s := ownedresources.NewService(m, podLabels(m), corev1.ServicePort{
		Name: portName, Port: port, TargetPort: intstr.FromString(portName),
	})
	s.Spec.ClusterIP = corev1.ClusterIPNone
	return s, nil
}
