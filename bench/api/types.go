// Package api contains the custom resource that the benchmarks reconcile. It stands for a Deployment, a Service and one
// condition, as in the first version of most operators.
//
// +kubebuilder:object:generate=true
// +groupName=bench.opblocks.dev
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of Site.
var GroupVersion = schema.GroupVersion{Group: "bench.opblocks.dev", Version: "v1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Site is a web site.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec,omitempty"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec is the desired state.
type SiteSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// SiteStatus is the observed state.
type SiteStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Nodes are the names of the pods, in the variants that list them.
	Nodes []string `json:"nodes,omitempty"`
}

// SiteList is a list of sites.
//
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}
