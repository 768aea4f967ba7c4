// Package v1alpha1 is the API group queue.example.com/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=queue.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "queue.example.com", Version: "v1alpha1"}

// AddToScheme adds the types of this API to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Topic{}, &TopicList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
