// Package v1alpha1 has the kinds of the operator.
package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ShopSpec is what the user wants.
type ShopSpec struct {
	Size int32 `json:"size"`
}

// ShopStatus is what the operator observes.
type ShopStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Shop is a shop.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec   `json:"spec,omitempty"`
	Status ShopStatus `json:"status,omitempty"`
}

// DeepCopyObject returns a copy.
func (s *Shop) DeepCopyObject() runtime.Object {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &copied
}

// ShopList is a list of shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Shop `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *ShopList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return &copied
}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}
	scheme.AddKnownTypes(version, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}
