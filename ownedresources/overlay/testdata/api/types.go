// Package api has a custom resource with a patch of a pod template. `make generate` generates its deep copies and its CRD.
//
// +kubebuilder:object:generate=true
// +groupName=overlay.test.opblocks.dev
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// GroupVersion is the API group and version of Site.
var GroupVersion = schema.GroupVersion{Group: "overlay.test.opblocks.dev", Version: "v1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Site is a web site.
//
// +kubebuilder:object:root=true
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SiteSpec `json:"spec,omitempty"`
}

// SiteSpec is the desired state.
type SiteSpec struct {
	Image string `json:"image,omitempty"`

	// PodTemplate is merged into the template of the pods.
	// +optional
	PodTemplate overlay.PodTemplate `json:"podTemplate,omitzero"`

	// Workers have a template each.
	// +optional
	Workers []Worker `json:"workers,omitempty"`
}

// Worker is one kind of pods.
type Worker struct {
	Name string `json:"name"`

	// PodTemplate is merged into the template of the pods.
	// +optional
	PodTemplate *overlay.PodTemplate `json:"podTemplate,omitempty"`
}

// SiteList is a list of sites.
//
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}
