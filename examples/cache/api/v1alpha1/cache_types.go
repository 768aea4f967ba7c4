package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/ownedresources/overlay"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// CacheSpec is the desired state of a Cache.
type CacheSpec struct {
	// Replicas is the number of pods. The first one is the primary, the others copy from it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Image of the server. Default: redis:7.4-alpine.
	// +optional
	Image string `json:"image,omitempty"`

	// Storage of each pod. It may grow, and never shrinks. Default: 1Gi.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// Settings are the lines of the server's configuration, such as maxmemory: 100mb.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`

	// SettingsFrom is a ConfigMap with more settings. Those of spec.settings win.
	// +optional
	SettingsFrom *corev1.LocalObjectReference `json:"settingsFrom,omitempty"`

	// PasswordVersion is any word. When it changes, a new password is generated.
	// +optional
	PasswordVersion string `json:"passwordVersion,omitempty"`

	// Priority of the pods. If it is set, they have a PriorityClass of their own.
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// PodTemplate is a strategic merge patch of the pods.
	// +optional
	PodTemplate overlay.PodTemplate `json:"podTemplate,omitzero"`

	// Backup copies the data by schedule.
	// +optional
	Backup *BackupSpec `json:"backup,omitempty"`

	// KeepBackups keeps the copies when the Cache is deleted, or spec.backup is removed.
	// +optional
	KeepBackups bool `json:"keepBackups,omitempty"`
}

// BackupSpec says when data is copied, and how much space the copies have.
type BackupSpec struct {
	// Schedule in the format of cron, in UTC.
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`

	// Storage for all copies. Default: 1Gi.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// CacheStatus is the observed state of a Cache.
type CacheStatus struct {
	// ReadyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector of the pods, as a string for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// PasswordSecret is the name of the Secret with the password, under the key password.
	// +optional
	PasswordSecret string `json:"passwordSecret,omitempty"`

	// RegisteredAddress is the address that the registry has.
	// +optional
	RegisteredAddress string `json:"registeredAddress,omitempty"`

	// Registration is the entry in the registry.
	// +optional
	Registration external.Record `json:"registration,omitzero"`

	// Backup is the state of the backups.
	// +kubebuilder:validation:XValidation:rule="(!has(self.lastScheduleTime) || type(self.lastScheduleTime) == google.protobuf.Timestamp) && (!has(self.lastSuccessfulTime) || type(self.lastSuccessfulTime) == google.protobuf.Timestamp) && (!has(self.nextScheduleTime) || type(self.nextScheduleTime) == google.protobuf.Timestamp) && (!has(self.scheduleSince) || type(self.scheduleSince) == google.protobuf.Timestamp)",message="every time must be one of RFC 3339"
	// +optional
	Backup scheduledjobs.Status `json:"backup,omitzero"`

	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Monitored, BackupVolume, Registered, Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, type(c.lastTransitionTime) == google.protobuf.Timestamp)",message="every time must be one of RFC 3339"
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Cache is a server of keys and values, with replicas, a generated password, and backups by schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Available,type=integer,JSONPath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Last-Backup,type=date,JSONPath=.status.backup.lastSuccessfulTime
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type Cache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec CacheSpec `json:"spec,omitzero"`
	// +optional
	Status CacheStatus `json:"status,omitzero"`
}

// CacheList is a list of Cache objects.
//
// +kubebuilder:object:root=true
type CacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cache `json:"items"`
}
