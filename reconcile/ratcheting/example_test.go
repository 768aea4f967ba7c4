package ratcheting_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/ratcheting"
)

// services validates Services. An operator passes it to WithValidator of controller-runtime's builder, in its
// SetupWithManager.
var services = ratcheting.Validator[*corev1.Service]{Validate: func(s *corev1.Service) field.ErrorList {
	return ownedresources.ValidateServicePorts(s.Spec.Ports, field.NewPath("spec", "ports"))
}}

// An update is refused only for errors that it adds.
func ExampleValidator() {
	service := func(protocol corev1.Protocol, ports ...int32) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", port), Protocol: protocol, Port: port})
		}
		return s
	}
	update := func(before, after client.Object) {
		warnings, err := services.ValidateUpdate(context.Background(), before.(*corev1.Service), after.(*corev1.Service))
		fmt.Println(len(warnings), "warnings, refused:", err != nil)
	}
	update(service("TCP", 80, 70000), service("TCP", 81, 70000))
	update(service("TCP", 80), service("TCP", 80, 70000))
	// Output:
	// 1 warnings, refused: false
	// 0 warnings, refused: true
}
