package scheduledjobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opblocks/opblocks/internal/heldjob"
	"github.com/opblocks/opblocks/internal/record"
)

// run is the Job of one scheduled time, with its state.
type run struct {
	job       *batchv1.Job
	scheduled time.Time
	state     runState
}

type runState int

const (
	held      runState = iota // created, suspended, and not started yet
	active                    // started, and not finished
	succeeded                 // finished
	failed                    // finished
)

// runOf returns the run of a Job. ok is false if the Job is not a run: it has no controller or no scheduled time, or its
// name does not match its owner and the scheduled time. So a copy of a Job with another name is not a run.
func runOf(job *batchv1.Job, suffix string) (r run, ok bool) {
	owner := metav1.GetControllerOfNoCopy(job)
	scheduled, err := time.Parse(time.RFC3339, job.Annotations[record.Scheduled])
	if owner == nil || err != nil || job.Name != jobName(owner.Name, suffix, scheduled) {
		return run{}, false
	}
	return run{job: job, scheduled: scheduled, state: stateOf(job)}, true
}

func stateOf(job *batchv1.Job) runState {
	end := heldjob.End(job)
	switch {
	case end != nil && end.Type == batchv1.JobComplete:
		return succeeded
	case end != nil:
		return failed
	case heldjob.IsHeld(job):
		return held
	}
	return active
}

// isDeleting reports whether the Job has a deletion timestamp.
func (r *run) isDeleting() bool { return r.job.DeletionTimestamp != nil }

// isRecorded reports whether the status records that the run was started, or is about to be started.
func (r *run) isRecorded(status *Status) bool {
	return r.job.UID == status.LastJobUID && status.LastScheduleTime != nil && status.LastScheduleTime.Time.Equal(r.scheduled)
}

// maxNameLength is the length of the longest name of a Job, because the API server sets the name as a label of the
// pods.
const maxNameLength = validation.DNS1123LabelMaxLength

// jobName returns the name of the Job of a scheduled time. The name has the owner's name, the suffix if there is one, and
// the minutes since 1970, as CronJob does it. If the time has seconds, they follow. If the name would be too long, the part
// before the time is shortened, and ends in a hash of the whole part.
func jobName(owner, suffix string, scheduled time.Time) string {
	prefix := owner
	if suffix != "" {
		prefix += "-" + suffix
	}
	seconds := scheduled.Unix()
	at := fmt.Sprintf("-%d", seconds/60)
	if seconds%60 != 0 {
		at += fmt.Sprintf("-%d", seconds%60)
	}
	if longest := maxNameLength - len(at); len(prefix) > longest {
		sum := sha256.Sum256([]byte(prefix))
		hash := hex.EncodeToString(sum[:5])
		prefix = strings.TrimRight(prefix[:longest-len(hash)-1], "-.") + "-" + hash // a dot before a hyphen would not be valid
	}
	return prefix + at
}

// isControlledBy reports whether the owner with this UID controls the Job.
func isControlledBy(job *batchv1.Job, owner types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(job)
	return ref != nil && ref.UID == owner
}
