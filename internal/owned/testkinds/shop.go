package testkinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// Shop owns the children of the tests of the engine, and of package ownedresources: shops.yaml.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ShopSpec   `json:"spec,omitzero"`
	Status            ShopStatus `json:"status,omitzero"`
}

// ShopSpec is what a user asks for.
type ShopSpec struct {
	// Version is the version of the server, and of the Job that migrates its data.
	Version string `json:"version,omitempty"`
	// Content is what the ConfigMaps hold.
	Content string `json:"content,omitempty"`
	// Shards is the number of children of a list.
	Shards int32 `json:"shards,omitempty"`
	// Volumes are the names of claims.
	Volumes []string `json:"volumes,omitempty"`
	// Storage is the size of a claim.
	Storage *resource.Quantity `json:"storage,omitempty"`
	// AccessMode is the access mode of a claim.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
	// KeepData keeps the data when the shop is deleted.
	KeepData bool `json:"keepData,omitempty"`
	// Rotate asks for a new password with each new value.
	Rotate string `json:"rotate,omitempty"`
	// Monitored asks for a monitor.
	Monitored bool `json:"monitored,omitempty"`
	// PodTemplate is merged into the template of the pods.
	PodTemplate overlay.PodTemplate `json:"podTemplate,omitzero"`
}

// ShopStatus is what the operator has observed.
type ShopStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ShopList is a list of Shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Shop `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (s *Shop) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy returns a copy that shares nothing with s.
func (s *Shop) DeepCopy() *Shop {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = *s.Spec.DeepCopy()
	out.Status.Conditions = slices.Clone(s.Status.Conditions)
	return &out
}

// DeepCopy returns a copy that shares nothing with s.
func (s *ShopSpec) DeepCopy() *ShopSpec {
	out := *s
	out.Volumes = slices.Clone(s.Volumes)
	s.PodTemplate.DeepCopyInto(&out.PodTemplate)
	if s.Storage != nil {
		out.Storage = new(s.Storage.DeepCopy())
	}
	return &out
}

// DeepCopyObject implements [runtime.Object].
func (l *ShopList) DeepCopyObject() runtime.Object {
	out := &ShopList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return out
}

// ShopKind is the kind of a [Shop].
var ShopKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}

// AddShop adds the kind Shop to a scheme.
func AddShop(s *runtime.Scheme) {
	s.AddKnownTypes(ShopKind.GroupVersion(), &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, ShopKind.GroupVersion())
}
