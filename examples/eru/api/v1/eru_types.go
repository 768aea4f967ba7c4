package v1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// Phases, spelled as in the article.
const (
	PhaseStopped = "Stoping"
	PhaseRunning = "Running"
	PhaseFailure = "Failure"
)

// Results of a rollout that a restart started.
const (
	RolloutInProgress = "InProgress"
	RolloutComplete   = "Complete"
	RolloutFailed     = "Failed"
	RolloutUnknown    = "Unknown" // its end was not observed
)

// Defaults of the spec.
const (
	DefaultSchedule     = "0 0 * * *"
	DefaultHistoryLimit = 10
)

// ConcurrencyPolicy is what to do when a restart is due while the Deployment is still rolling out.
type ConcurrencyPolicy string

const (
	// ForbidConcurrent skips the restart.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent restarts the Deployment all the same.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// EruSpec is the desired state of an Eru.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.deploymentname) || size(oldSelf.deploymentname) == 0 || has(self.deploymentname) && self.deploymentname == oldSelf.deploymentname",message="deploymentname cannot be changed: create another Eru"
type EruSpec struct {
	// DeploymentName is the name of the Deployment to restart. Default: the Eru's own name. It cannot be changed.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	DeploymentName string `json:"deploymentname,omitempty"`

	// Enabled turns the schedule on.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled"`

	// Schedule is when to restart, in cron syntax: minute, hour, day of month, month, day of week; or a macro such as @daily;
	// or an interval such as @every 12h.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:default="0 0 * * *"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	schedule.Options `json:",inline"`

	// ConcurrencyPolicy is what to do when a restart is due while the Deployment is still rolling out: Forbid skips the
	// restart, Replace restarts nevertheless. Both skip a paused Deployment.
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

// EruCondition is an entry of the history. Its fields are named as in the article.
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

// EruStatus is the observed state of an Eru.
type EruStatus struct {
	// Phase is Stoping, Running or Failure.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Conditions are a history, the oldest first.
	// +listType=atomic
	// +optional
	Conditions []EruCondition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status was written for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	schedule.Status `json:",inline"`

	// LastRestartTime is when the last restart started.
	// +optional
	LastRestartTime *metav1.Time `json:"lastRestartTime,omitempty"`

	// LastRolloutResult is the result of the last restart: InProgress, Complete, Failed, or Unknown if its end was not observed.
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

// DeploymentName returns the name of the Deployment to restart.
func (e *Eru) DeploymentName() string { return cmp.Or(e.Spec.DeploymentName, e.Name) }

// Deployments returns the key of the Deployment to restart, as the only element.
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
