package scheduledjobs

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// Spec has the fields with which a user sets a schedule of Jobs. Embed it inline in a spec, or make it a field of its
// own; the markers are for controller-gen. The fields that CronJob has too have the same names, meanings and defaults,
// except for the default of ConcurrencyPolicy.
type Spec struct {
	// Schedule is when to run, in cron syntax: minute, hour, day of month, month, day of week; or a macro such as @daily; or
	// an interval such as @every 12h.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Schedule string `json:"schedule"`

	schedule.Options `json:",inline"`

	// Suspend stops the schedule while it is true. Jobs that run already go on. Runs that become due while it is true
	// do not run later.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ConcurrencyPolicy is what to do when a run is due while the Job of an earlier one has not finished: Allow starts
	// it beside that, Forbid waits until no other Job runs, and Replace deletes that Job. The default is Forbid, where
	// CronJob has Allow: runs of one schedule work on the same data, and the runs of a slow Job would pile up.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy batchv1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// SuccessfulJobsHistoryLimit is how many Jobs that succeeded are kept.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=3
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many Jobs that failed are kept.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// defaultConcurrencyPolicy is the default of ConcurrencyPolicy. NewCronJob of package ownedresources sets the same
// policy.
const defaultConcurrencyPolicy = batchv1.ForbidConcurrent

// The defaults of the history limits are the same as for CronJob.
const (
	defaultSuccessfulJobsHistoryLimit = 3 // how many Jobs that succeeded are kept
	defaultFailedJobsHistoryLimit     = 1 // how many Jobs that failed are kept
)

// Status has everything that [Jobs] remembers about a schedule. Embed it inline in a status, or make it a field of
// its own.
type Status struct {
	schedule.Status `json:",inline"`

	// LastJobName is the name of the Job that was created last.
	// +optional
	LastJobName string `json:"lastJobName,omitempty"`

	// LastJobUID is the UID of that Job.
	// +optional
	LastJobUID types.UID `json:"lastJobUID,omitempty"`

	// LastSuccessfulTime is when the last Job that succeeded completed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
}

// DeepCopy returns a copy of the spec, or nil for nil. The code that controller-gen generates for a pointer calls it.
func (s *Spec) DeepCopy() *Spec {
	if s == nil {
		return nil
	}
	out := new(Spec)
	s.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies the spec into out. The code that controller-gen generates calls it.
func (s *Spec) DeepCopyInto(out *Spec) {
	*out = *s
	s.Options.DeepCopyInto(&out.Options)
	if s.SuccessfulJobsHistoryLimit != nil {
		out.SuccessfulJobsHistoryLimit = new(*s.SuccessfulJobsHistoryLimit)
	}
	if s.FailedJobsHistoryLimit != nil {
		out.FailedJobsHistoryLimit = new(*s.FailedJobsHistoryLimit)
	}
}

// DeepCopy returns a copy of the status, or nil for nil. The code that controller-gen generates for a pointer calls it.
func (s *Status) DeepCopy() *Status {
	if s == nil {
		return nil
	}
	out := new(Status)
	s.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies the status into out. The code that controller-gen generates calls it.
func (s *Status) DeepCopyInto(out *Status) {
	*out = *s
	s.Status.DeepCopyInto(&out.Status)
	out.LastSuccessfulTime = s.LastSuccessfulTime.DeepCopy()
}

// limits returns how many Jobs are kept: Jobs that succeeded, and Jobs that failed.
func (s *Spec) limits() (successful, failed int) {
	successful, failed = defaultSuccessfulJobsHistoryLimit, defaultFailedJobsHistoryLimit
	if limit := s.SuccessfulJobsHistoryLimit; limit != nil {
		successful = int(*limit)
	}
	if limit := s.FailedJobsHistoryLimit; limit != nil {
		failed = int(*limit)
	}
	return successful, failed
}

// forget makes a run due again, because its Job was never started. It reports whether the run was recorded.
func (s *Status) forget(r *run) bool {
	if !r.isRecorded(s) {
		return false
	}
	s.LastScheduleTime = new(metav1.NewTime(r.scheduled.Add(-time.Second)))
	return true
}

// invalidError is returned for a value in [Spec] that the schema of the custom resource should have refused.
type invalidError struct{ reason, message string }

func (e *invalidError) Error() string  { return e.message }
func (e *invalidError) Reason() string { return e.reason }

// validate checks the fields that package schedule does not check.
func (s *Spec) validate() error {
	switch s.ConcurrencyPolicy {
	case "", batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent:
	default:
		return &invalidError{
			"InvalidConcurrencyPolicy",
			fmt.Sprintf("invalid concurrencyPolicy %q: write Allow, Forbid or Replace", s.ConcurrencyPolicy),
		}
	}
	if successful, failed := s.limits(); successful < 0 || failed < 0 {
		return &invalidError{
			"InvalidHistoryLimit",
			fmt.Sprintf("invalid successfulJobsHistoryLimit %d or failedJobsHistoryLimit %d: it is negative; write 0 or more", successful, failed),
		}
	}
	return nil
}
