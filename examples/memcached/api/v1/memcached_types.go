package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedSpec is the desired state of a Memcached.
type MemcachedSpec struct {
	// Size is the number of memcached pods.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`

	// Image of memcached. Default: memcached:1.6-alpine.
	// +optional
	Image string `json:"image,omitempty"`

	// Resources of the container. Default: requests of 50m CPU, and of memory plus 32 Mi of memory.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// Memory is the maximum size of the cache in each pod, from 1Mi to 1Ti. The server takes whole mebibytes: a fraction is dropped.
	// Default: 64Mi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9.]{1,30}([KMGTPE]i|[numkMGTPE])?$') && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",message="must be a quantity from 1Mi to 1Ti without an exponent"
	// +optional
	Memory *Quantity `json:"memory,omitempty"`

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
// +kubebuilder:storageversion
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
