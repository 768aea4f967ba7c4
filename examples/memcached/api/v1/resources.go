package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ResourceRequirements has the fields of corev1.ResourceRequirements. The generated schema of that type accepts quantities
// that Go cannot decode, such as 1e1.5, and then the operator could not list any object of this kind in any namespace. It also
// accepts quantities such as 1e999999999, which occupy the API server for half a minute.
type ResourceRequirements struct {
	// Limits are the largest amounts of resources that the container may use.
	// +optional
	Limits ResourceList `json:"limits,omitempty"`

	// Requests are the amounts of resources that the container needs. A request that is unset is as large as the limit.
	// +optional
	Requests ResourceList `json:"requests,omitempty"`

	// Claims are names of entries in the pod's resourceClaims.
	// +kubebuilder:validation:MaxItems=30
	// +listType=map
	// +listMapKey=name
	// +optional
	Claims []corev1.ResourceClaim `json:"claims,omitempty"`
}

// ResourceList is an amount of each named resource, such as cpu or memory.
//
// +kubebuilder:validation:MaxProperties=64
type ResourceList map[corev1.ResourceName]Quantity

// Quantity is a number of at most 18 digits and 9 decimal places, with a suffix such as m, k or Gi, or an exponent of one or
// two digits. Go can decode every quantity that matches the pattern, and computes with it at little cost.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
type Quantity struct {
	// An int-or-string has an empty type in a schema: hence the first marker.
	resource.Quantity `json:",inline"`
}

// Core returns the same requirements as a container has them.
func (r *ResourceRequirements) Core() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: r.Limits.core(), Requests: r.Requests.core(), Claims: r.Claims}
}

func (l ResourceList) core() corev1.ResourceList {
	if l == nil {
		return nil
	}
	list := make(corev1.ResourceList, len(l))
	for name, quantity := range l {
		list[name] = quantity.Quantity
	}
	return list
}
