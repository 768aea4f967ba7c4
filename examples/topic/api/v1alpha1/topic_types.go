package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TopicSpec is the desired state of a Topic.
type TopicSpec struct {
	// Partitions is the number of partitions. It can only grow, since the messages of a partition would be lost. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="partitions cannot be removed"
	// +kubebuilder:default=1
	// +optional
	Partitions int32 `json:"partitions,omitempty"`

	// RetentionHours is how long the server keeps messages, in hours. Default: 168, a week.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	// +kubebuilder:default=168
	// +optional
	RetentionHours int32 `json:"retentionHours,omitempty"`

	// Token selects a key of a Secret in the same namespace: the token with which the operator calls the server. It is needed until the
	// Topic is gone.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != '' && self.key != ''",message="name the Secret and its key"
	Token corev1.SecretKeySelector `json:"token"`

	// DeletionPolicy is whether the server's topic, with its messages, is deleted with the Topic. Default: Delete.
	// +kubebuilder:validation:Enum=Delete;Retain
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// DeletionPolicy is what to do with the server's topic when its Topic is deleted.
type DeletionPolicy string

// The deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionRetain DeletionPolicy = "Retain"
)

// TopicStatus is the observed state of a Topic.
type TopicStatus struct {
	// External is what belongs to the Topic on the server.
	// +optional
	External external.Record `json:"external,omitzero"`

	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, type(c.lastTransitionTime) == google.protobuf.Timestamp)",message="every time must be one of RFC 3339"
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Topic is a topic on a queue server. Its name there is NAMESPACE.NAME.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Partitions,type=integer,JSONPath=.spec.partitions
// +kubebuilder:printcolumn:name=Hours,type=integer,JSONPath=.spec.retentionHours
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type Topic struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec TopicSpec `json:"spec,omitzero"`
	// +optional
	Status TopicStatus `json:"status,omitzero"`
}

// TopicList is a list of Topic objects.
//
// +kubebuilder:object:root=true
type TopicList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Topic `json:"items"`
}
