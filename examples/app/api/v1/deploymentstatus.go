package v1

import appsv1 "k8s.io/api/apps/v1"

// DeploymentStatus has the fields of appsv1.DeploymentStatus, to which it can be converted. It is a type of its own for its
// schema: the API server refuses the one that is generated for appsv1.DeploymentStatus, because the type of a condition is
// optional there, although it is the key of the list. Without a schema the status could have numbers and times that Go cannot
// decode, and then the operator could not list any App in any namespace.
type DeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is the number of pods that are not terminating.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// UpdatedReplicas is the number of pods, not terminating, that have the present template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// ReadyReplicas is the number of pods, not terminating, that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// AvailableReplicas is the number of pods, not terminating, that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// UnavailableReplicas is the number of pods that are missing for the Deployment to be available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// TerminatingReplicas is the number of pods that are terminating.
	// +optional
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty"`

	// Conditions of the Deployment and of the App.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, (!has(c.lastUpdateTime) || type(c.lastUpdateTime) == google.protobuf.Timestamp) && (!has(c.lastTransitionTime) || type(c.lastTransitionTime) == google.protobuf.Timestamp))",message="every time must be one of RFC 3339"
	// +listType=atomic
	// +optional
	Conditions []appsv1.DeploymentCondition `json:"conditions,omitempty"`

	// CollisionCount is how often the name of a new ReplicaSet was taken.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
}
