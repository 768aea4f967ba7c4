package ownedresources

import (
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

const (
	reasonJobRunning  = "JobRunning"
	reasonJobFailed   = "JobFailed"
	reasonPodsRunning = "FormerPodsRunning"

	// podRecheck is how long to wait for the pods of an earlier Job: they are not watched.
	podRecheck = 10 * time.Second
)

// RunOnce runs a Job once for each content, also if its time to live removes it or the operator crashes. The content is
// the spec of the Job without backoffLimit, activeDeadlineSeconds, parallelism, suspend and ttlSecondsAfterFinished.
// The child is ready when the Job is complete, and stays so when the Job is gone; so other children can come after it
// ([Child.After]).
//
//	migration := ownedresources.Build(migrationJob, ownedresources.RunOnce())
//	ownedresources.Ensure(migration, ownedresources.Build(deployment).After(migration))
//
// If the content changes, the Job is deleted, also while it runs. When its pods are gone, the new one is created: there
// are never two at once. The earlier content counts as new if it comes back.
//
// The new Job also waits for the pods if somebody has deleted the Job without them. These pods have the label
// batch.kubernetes.io/job-name of this Job, and no controller or one of this name. While one runs, the error is a
// [*WaitingError] with the reason FormerPodsRunning, which names the pod. The set looks again after 10 seconds.
//
// A Job that fails is shown by a [*FailedError] and is not repeated, not even after its time to live, until the content
// changes or somebody deletes the failed Job. A Job that is deleted while it runs is created again. To repeat a Job
// that has completed, or that has failed and is gone, delete it if it is still there, and remove the owner's annotation
// run-once.opblocks.dev/ with the name of the Job.
//
// When the Job falls out of what is desired, it is deleted, and the annotation is removed. If it comes back, it runs
// again, also with the same content.
//
// The Job is created suspended. It is started when the annotation of the owner names it. The annotation is written with
// the owner's resource version as precondition. So a process that sees an old version of the owner, or a replica that
// is not the leader any more, cannot start it again. If the Job sets suspend itself, as one for a queue does, it is
// created as it is.
//
// The Job has the finalizer opblocks.dev/run-once until the owner's annotation says how it has ended. The set has a
// finalizer on the owner, so that it takes the finalizer off the Job when the owner is deleted: see
// [ChildSet.FinalizerName]. The operator needs the verbs patch on the owner and list on pods.
//
// RunOnce decides when the child is ready and when the Job is replaced, so it excludes [ReadyWhen] and [Recreate].
func RunOnce() ChildOption {
	return func(o *childOptions) { o.runOnce = true }
}

func (o *childOptions) runOnceMistake(kind schema.GroupKind) error {
	switch {
	case !o.runOnce:
		return nil
	case kind != schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return errors.New("RunOnce is for a Job: take it away, or put what has to run once into a Job")
	case o.readyCondition != "":
		return errors.New("it has RunOnce and ReadyWhen: it is ready when the Job is complete; take ReadyWhen away")
	case o.recreate:
		return errors.New("it has RunOnce and Recreate: RunOnce replaces the Job itself; take Recreate away")
	}
	return nil
}

// jobState is what is observed of a live Job.
type jobState struct {
	uid              types.UID
	content          string // empty if somebody has removed the annotation
	deleting, held   bool
	complete, failed bool
	expired          bool // it is being deleted because of its time to live
	finalizer        bool // it has the finalizer opblocks.dev/run-once
	collected        bool // the garbage collector deletes or orphans its pods before the Job goes
}

func observeJob(job *batchv1.Job) *jobState {
	s := &jobState{
		uid: job.UID, content: job.Annotations[record.Content], deleting: job.DeletionTimestamp != nil,
		held: job.Annotations[record.Held] != "",
	}
	for _, f := range job.Finalizers {
		s.finalizer = s.finalizer || f == record.RunOnce
		s.collected = s.collected || f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		s.complete, s.failed = s.complete || c.Type == batchv1.JobComplete, s.failed || c.Type == batchv1.JobFailed
		if ttl := job.Spec.TTLSecondsAfterFinished; s.deleting && ttl != nil {
			s.expired = !job.DeletionTimestamp.Time.Before(c.LastTransitionTime.Add(time.Duration(*ttl) * time.Second))
		}
	}
	return s
}

// runAction is what has to be done next for a Job of [RunOnce].
type runAction string

const (
	runCreate         runAction = "create the Job"
	runName           runAction = "name the Job in the owner's annotation"
	runStart          runAction = "start the Job"
	runApply          runAction = "apply the Job as any other child"
	runRecordComplete runAction = "record that it is complete"
	runRecordFailed   runAction = "record that it has failed"
	runRelease        runAction = "remove the finalizer"
	runReplace        runAction = "delete the Job, since its content has changed"
	runDiscard        runAction = "delete the Job, which was never started and is not needed"
	runDeletePods     runAction = "delete the pods before the Job, which somebody has deleted"
	runWait           runAction = "wait until the Job is gone"
	runIdentify       runAction = "apply the Job, to find out whether its content is this one"
	runNothing        runAction = "do nothing: it has run"
)

// nextRunAction decides what has to be done for a Job of this content. job is nil if there is none.
func nextRunAction(last record.Run, content string, job *jobState) runAction {
	if job == nil {
		if last.Ended(content) {
			return runNothing
		}
		return runCreate
	}
	same := job.content == content
	switch {
	case job.deleting && !job.finalizer && last.Ended(content):
		return runNothing
	case job.deleting && !job.finalizer:
		return runWait
	case same && job.complete && !last.Is(record.RunComplete, content):
		return runRecordComplete
	case same && job.failed && job.expired && !last.Is(record.RunFailed, content):
		return runRecordFailed
	case job.deleting && !job.complete && !job.failed && !job.held && !job.collected:
		return runDeletePods
	case job.deleting:
		return runRelease
	case job.content == "":
		return runIdentify
	case !same:
		return runReplace
	case last.Ended(content) && job.held:
		return runDiscard
	case last.Ended(content) && job.finalizer:
		return runRelease
	case last.Ended(content):
		return runNothing
	case job.held && !last.Names(content, job.uid):
		return runName
	case job.held:
		return runStart
	}
	return runApply
}
