package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// Jobs returns the simulated controller of Jobs. It also deletes finished Jobs after their time to live. outcome returns the condition with
// which a Job ends, Complete or Failed, or "" while its pods go on running.
func Jobs(outcome func(*batchv1.Job) batchv1.JobConditionType) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		var all batchv1.JobList
		return stepEach(ctx, c, &all, &all.Items, "run", "Job", func(ctx context.Context, c client.Client, job *batchv1.Job) error {
			if ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
				return nil
			}
			return stepJob(ctx, c, job, outcome)
		})
	}
}

// job is a Job during one step of its controller.
type job struct {
	obj    *batchv1.Job
	client client.Client
	pods   []*corev1.Pod
}

func stepJob(ctx context.Context, c client.Client, obj *batchv1.Job, outcome func(*batchv1.Job) batchv1.JobConditionType) (err error) {
	j := &job{obj: obj, client: c}
	if isFinishedJob(obj) {
		return j.deleteAfterTTL(ctx)
	}
	if j.pods, err = podsOf(ctx, c, obj); err != nil {
		return err
	}
	before := obj.Status.DeepCopy()
	failure, success := j.condition(batchv1.JobFailureTarget), j.condition(batchv1.JobSuccessCriteriaMet)
	switch {
	case success != nil: // the real controller sets Complete only when all pods have ended
		j.setCondition(batchv1.JobComplete, success.Reason, success.Message)
		j.obj.Status.CompletionTime = new(metav1.Now())
	case failure != nil:
		j.setCondition(batchv1.JobFailed, failure.Reason, failure.Message)
	case ptr.Deref(obj.Spec.Suspend, false):
		err = j.suspend(ctx)
	default:
		err = j.run(ctx, outcome)
	}
	if err != nil {
		return err
	}
	j.count()
	if equality.Semantic.DeepEqual(before, &obj.Status) {
		return nil
	}
	return c.Status().Update(ctx, obj)
}

func isFinishedJob(obj *batchv1.Job) bool { return !finishedAt(obj).IsZero() }

// finishedAt returns when a Job has completed or failed, or the zero time if it has not. A condition that a scenario
// sets may have no time. Then finishedAt returns the completion time, or else the creation time.
func finishedAt(obj *batchv1.Job) time.Time {
	for _, c := range obj.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			for _, at := range []metav1.Time{c.LastTransitionTime, ptr.Deref(obj.Status.CompletionTime, metav1.Time{}), obj.CreationTimestamp} {
				if !at.IsZero() {
					return at.Time
				}
			}
		}
	}
	return time.Time{}
}

func (j *job) deleteAfterTTL(ctx context.Context) error {
	if ttl := j.obj.Spec.TTLSecondsAfterFinished; ttl == nil || time.Now().Before(finishedAt(j.obj).Add(time.Duration(*ttl)*time.Second)) {
		return nil
	}
	return client.IgnoreNotFound(j.client.Delete(ctx, j.obj, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &j.obj.UID}))
}

// condition returns the condition of the Job with this type if it is true. Otherwise it returns nil.
func (j *job) condition(of batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.obj.Status.Conditions {
		if c := &j.obj.Status.Conditions[i]; c.Type == of && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func (j *job) setCondition(of batchv1.JobConditionType, reason, message string) {
	j.obj.Status.Conditions = slices.DeleteFunc(j.obj.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == of })
	j.obj.Status.Conditions = append(j.obj.Status.Conditions, batchv1.JobCondition{
		Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	})
}

// suspend deletes the pods that have not ended.
func (j *job) suspend(ctx context.Context) error {
	if j.condition(batchv1.JobSuspended) == nil {
		j.setCondition(batchv1.JobSuspended, "JobSuspended", "Job suspended")
		j.obj.Status.StartTime = nil
	}
	return j.deleteActive(ctx)
}

func (j *job) deleteActive(ctx context.Context) error {
	var ended []*corev1.Pod
	for _, pod := range j.pods {
		if isFinished(pod) {
			ended = append(ended, pod)
			continue
		}
		if err := deletePod(ctx, j.client, pod); err != nil {
			return err
		}
	}
	j.pods = ended
	return nil
}

// run ends the pods that the previous step has created, or creates the pods that are missing.
func (j *job) run(ctx context.Context, outcome func(*batchv1.Job) batchv1.JobConditionType) error {
	if suspended := j.condition(batchv1.JobSuspended); suspended != nil {
		suspended.Status, suspended.Reason, suspended.Message, suspended.LastTransitionTime = corev1.ConditionFalse, "JobResumed", "Job resumed", metav1.Now()
	}
	if j.obj.Status.StartTime == nil {
		j.obj.Status.StartTime = new(metav1.Now())
	}
	if limit := j.obj.Spec.ActiveDeadlineSeconds; limit != nil && !time.Now().Before(j.obj.Status.StartTime.Add(time.Duration(*limit)*time.Second)) {
		j.setCondition(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		return j.deleteActive(ctx)
	}
	if j.active() == 0 && !j.isDone() {
		return j.createPods(ctx)
	}
	switch end := outcome(j.obj.DeepCopy()); {
	case end != "" && end != batchv1.JobComplete && end != batchv1.JobFailed:
		return fmt.Errorf("no Job ends with the condition %q: return Complete, Failed, or an empty text for a Job that runs on", end)
	case end == "" || j.isUnpullable():
		return j.startPods(ctx)
	case end == batchv1.JobFailed:
		return j.fail(ctx)
	}
	for _, pod := range j.pods {
		if !isFinished(pod) {
			if err := finish(ctx, j.client, pod, true); err != nil {
				return err
			}
		}
	}
	if j.isDone() {
		j.setCondition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
	return nil
}

// fail makes one pod fail, and then the Job, as if the Job had reached its backoff limit.
func (j *job) fail(ctx context.Context) error {
	for _, pod := range j.pods {
		if !isFinished(pod) {
			if err := finish(ctx, j.client, pod, false); err != nil {
				return err
			}
			break
		}
	}
	j.setCondition(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	return j.deleteActive(ctx)
}

func (j *job) startPods(ctx context.Context) error {
	for _, pod := range j.pods {
		if isPending(pod) {
			if err := start(ctx, j.client, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) isUnpullable() bool {
	return slices.ContainsFunc(j.obj.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return isUnpullable(c.Image) })
}

func (j *job) isIndexed() bool {
	return ptr.Deref(j.obj.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// wanted returns how many pods have to succeed.
func (j *job) wanted() int {
	if j.obj.Spec.Completions == nil { // a work queue: its pods end together
		return int(ptr.Deref(j.obj.Spec.Parallelism, 1))
	}
	return int(*j.obj.Spec.Completions)
}

func (j *job) isDone() bool { return j.succeeded() >= j.wanted() }

func (j *job) active() (n int) {
	for _, pod := range j.pods {
		if !isFinished(pod) {
			n++
		}
	}
	return n
}

// succeeded returns how many pods have succeeded. If the Job's status has a larger number, it returns that number: somebody may have
// deleted such pods.
func (j *job) succeeded() int {
	n := 0
	for _, pod := range j.pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			n++
		}
	}
	return max(n, int(j.obj.Status.Succeeded))
}

// createPods creates as many pods as may run at a time.
func (j *job) createPods(ctx context.Context) error {
	begun := j.succeeded()
	for range min(int(ptr.Deref(j.obj.Spec.Parallelism, 1)), j.wanted()-begun) {
		pod := podOf(j.obj, jobKind, &j.obj.Spec.Template, nil)
		pod.GenerateName = j.obj.Name + "-"
		if j.isIndexed() {
			index := strconv.Itoa(begun)
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, index)
			pod.Labels[batchv1.JobCompletionIndexAnnotation] = index
			pod.GenerateName, pod.Spec.Hostname = j.obj.Name+"-"+index+"-", j.obj.Name+"-"+index
			begun++
		}
		if err := j.client.Create(ctx, pod); err != nil {
			return err
		}
		j.pods = append(j.pods, pod)
	}
	return nil
}

// count counts the pods in the status.
func (j *job) count() {
	s := &j.obj.Status
	ready, failed := int32(0), int32(0)
	for _, pod := range j.pods {
		if isReady(pod) {
			ready++
		}
		if pod.Status.Phase == corev1.PodFailed {
			failed++
		}
	}
	s.Active, s.Succeeded, s.Failed = int32(j.active()), int32(j.succeeded()), max(failed, s.Failed)
	s.Ready, s.Terminating, s.UncountedTerminatedPods = &ready, new(int32), &batchv1.UncountedTerminatedPods{}
	if j.isIndexed() && s.Succeeded > 0 {
		s.CompletedIndexes = "0"
		if s.Succeeded > 1 {
			s.CompletedIndexes = fmt.Sprintf("0-%d", s.Succeeded-1)
		}
	}
}
