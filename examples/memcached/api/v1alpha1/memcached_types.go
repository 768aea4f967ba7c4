package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// MemcachedSpec is the desired state of a Memcached.
type MemcachedSpec struct {
	// Size is the number of memcached pods.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`

	// Image of memcached. Default: memcached:1.6-alpine.
	// +optional
	Image string `json:"image,omitempty"`

	// Resources of the container. Default: requests of 50m CPU, and of memoryMB plus 32 Mi of memory.
	// +optional
	Resources *cachev1.ResourceRequirements `json:"resources,omitempty"`

	// MemoryMB is the maximum size of the cache in each pod, in megabytes. Default: 64.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	MemoryMB int32 `json:"memoryMB,omitempty"`

	// MaxConnections is the maximum number of clients connected to each pod. Default: 1024.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// MemcachedStatus is the observed state of a Memcached.
type MemcachedStatus struct {
	// Nodes are the names of the pods, sorted, without those that are terminating.
	Nodes []string `json:"nodes"`

	// ReadyReplicas is the number of nodes that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Available is readyReplicas/size as a string: a column of kubectl shows only one field.
	// +optional
	Available string `json:"available,omitempty"`

	// Selector of the pods, as a string for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Available, ServiceReady, Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, type(c.lastTransitionTime) == google.protobuf.Timestamp)",message="every time must be one of RFC 3339"
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is a number of memcached pods, and a Service to find them.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="cache.example.com/v1alpha1 Memcached is deprecated: use cache.example.com/v1, where spec.memory: 64Mi replaces spec.memoryMB: 64"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=.spec.size
// +kubebuilder:printcolumn:name=Available,type=string,JSONPath=.status.available
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// An empty spec is written too: it says that the size is 0.

	// +optional
	Spec MemcachedSpec `json:"spec"`
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcached objects.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}
