package v1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// Phases, spelled as they were published.
const (
	PhaseStopped = "Stoping"
	PhaseRunning = "Running"
	PhaseFailure = "Failure"
)

// What may have become of a restart.
const (
	RolloutInProgress = "InProgress"
	RolloutComplete   = "Complete"
	RolloutFailed     = "Failed"
	RolloutUnknown    = "Unknown" // it could not be watched to its end
)

// The defaults of a spec.
const (
	DefaultSchedule     = "0 0 * * *"
	DefaultHistoryLimit = 10
)

// ConcurrencyPolicy says what becomes of a restart that is due while the Deployment is still rolling out.
type ConcurrencyPolicy string

const (
	// ForbidConcurrent leaves it out.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent restarts anyway.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// EruSpec is what a user wants.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.deploymentname) || size(oldSelf.deploymentname) == 0 || has(self.deploymentname) && self.deploymentname == oldSelf.deploymentname",message="deploymentname cannot be changed: create another Eru"
type EruSpec struct {
	// DeploymentName is the Deployment that is restarted. Default: the one with the Eru's own name. It cannot be changed.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	DeploymentName string `json:"deploymentname,omitempty"`

	// Enabled says whether the schedule runs.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled"`

	// Schedule says when: minute, hour, day of month, month, day of week, or @daily and the like, or @every 12h.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:default="0 0 * * *"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	schedule.Options `json:",inline"`

	// ConcurrencyPolicy says what becomes of a restart that is due while the Deployment is still rolling out: Forbid leaves
	// it out, Replace restarts anyway. A paused Deployment is left out under both.
	// +kubebuilder:validation:Enum=Forbid;Replace
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// HistoryLimit is how many conditions are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=10
	// +optional
	HistoryLimit int `json:"historyLimit,omitempty"`
}

// EruCondition is what became so at a time. Its names are as they were published.
type EruCondition struct {
	// +kubebuilder:validation:MaxLength=316
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	Ready bool `json:"ready"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason"`
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message"`
	// +nullable
	// +optional
	LastedTranslationTime *metav1.Time `json:"lastedTranslationTime,omitempty"`
}

// EruStatus is what there is.
type EruStatus struct {
	// Phase is Stoping, Running or Failure.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Conditions are a history: each is added when it becomes so, the oldest first.
	// +listType=atomic
	// +optional
	Conditions []EruCondition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	schedule.Status `json:",inline"`

	// LastRestartTime is when the pods were last told to be replaced.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty"`

	// LastRolloutResult is what became of that: InProgress, Complete, Failed, or Unknown if it could not be watched to its end.
	// +optional
	LastRolloutResult string `json:"lastRolloutResult,omitempty"`
}

// Eru restarts a Deployment on a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=erus
// +kubebuilder:printcolumn:name=Deployment,type=string,JSONPath=.spec.deploymentname
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=.spec.schedule
// +kubebuilder:printcolumn:name=Enabled,type=boolean,JSONPath=.spec.enabled
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=.status.phase
// +kubebuilder:printcolumn:name=Last,type=date,JSONPath=.status.lastRestartTime
// +kubebuilder:printcolumn:name=Next,type=string,JSONPath=.status.nextScheduleTime
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type Eru struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec EruSpec `json:"spec,omitzero"`
	// +optional
	Status EruStatus `json:"status,omitzero"`
}

// DeploymentName is that of the Deployment that it is for.
func (e *Eru) DeploymentName() string { return cmp.Or(e.Spec.DeploymentName, e.Name) }

// Deployments are those that it is for: one.
func (e *Eru) Deployments() []types.NamespacedName {
	return []types.NamespacedName{{Namespace: e.Namespace, Name: e.DeploymentName()}}
}

// EruList is a list of Erus.
//
// +kubebuilder:object:root=true
type EruList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Eru `json:"items"`
}
