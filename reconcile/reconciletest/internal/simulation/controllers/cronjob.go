package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var cronJobKind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// CronJobs simulates the controller of CronJobs.
func CronJobs(ctx context.Context, c client.Client) error {
	var all batchv1.CronJobList
	return stepEach(ctx, c, &all, &all.Items, "schedule", "CronJob", stepCronJob)
}

// stepCronJob observes the Jobs of a CronJob, deletes those beyond the history limits, and creates the one that is due.
func stepCronJob(ctx context.Context, c client.Client, obj *batchv1.CronJob) error {
	var all batchv1.JobList
	if err := c.List(ctx, &all, client.InNamespace(obj.Namespace)); err != nil {
		return err
	}
	before := obj.Status.DeepCopy()
	var active, succeeded, failed []*batchv1.Job
	for i := range all.Items {
		job := &all.Items[i]
		switch {
		case !metav1.IsControlledBy(job, obj):
		case !isFinishedJob(job):
			active = append(active, job)
		case hasFailed(job):
			failed = append(failed, job)
		default:
			succeeded = append(succeeded, job)
			if at := job.Status.CompletionTime; at != nil && (obj.Status.LastSuccessfulTime == nil || obj.Status.LastSuccessfulTime.Before(at)) {
				obj.Status.LastSuccessfulTime = at
			}
		}
	}
	slices.SortFunc(active, byCreation)
	if err := deleteOldest(ctx, c, succeeded, obj.Spec.SuccessfulJobsHistoryLimit); err != nil {
		return err
	}
	if err := deleteOldest(ctx, c, failed, obj.Spec.FailedJobsHistoryLimit); err != nil {
		return err
	}
	active, err := startDue(ctx, c, obj, active)
	if err != nil {
		return err
	}
	obj.Status.Active = nil
	for _, job := range active {
		obj.Status.Active = append(obj.Status.Active, corev1.ObjectReference{
			APIVersion: jobKind.GroupVersion().String(), Kind: jobKind.Kind, Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: versionOf(before, job),
		})
	}
	if equality.Semantic.DeepEqual(before, &obj.Status) {
		return nil
	}
	return c.Status().Update(ctx, obj)
}

// versionOf returns the resource version of a Job in the references of the CronJob's status: the Job's version at the time when the
// reference was made. If the status has no reference to the Job yet, it returns the Job's present version.
func versionOf(status *batchv1.CronJobStatus, job *batchv1.Job) string {
	for _, ref := range status.Active {
		if ref.UID == job.UID {
			return ref.ResourceVersion
		}
	}
	return job.ResourceVersion
}

func hasFailed(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
	})
}

// byCreation sorts Jobs by the time of their creation, and then by name.
func byCreation(a, b *batchv1.Job) int {
	if d := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); d != 0 {
		return d
	}
	return slices.Compare([]byte(a.Name), []byte(b.Name))
}

// deleteOldest deletes the oldest Jobs beyond the limit. If the limit is nil, it keeps all.
func deleteOldest(ctx context.Context, c client.Client, jobs []*batchv1.Job, limit *int32) error {
	if limit == nil {
		return nil
	}
	slices.SortFunc(jobs, byCreation)
	for _, job := range jobs[:max(0, len(jobs)-int(*limit))] {
		if err := deleteJob(ctx, c, job); err != nil {
			return err
		}
	}
	return nil
}

func deleteJob(ctx context.Context, c client.Client, job *batchv1.Job) error {
	return client.IgnoreNotFound(c.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// startDue creates the Job for the latest time of the schedule that has passed, unless the CronJob does not allow it. It returns the active
// Jobs.
func startDue(ctx context.Context, c client.Client, obj *batchv1.CronJob, active []*batchv1.Job) ([]*batchv1.Job, error) {
	due := latestDue(obj)
	if due.IsZero() || ptr.Deref(obj.Spec.Suspend, false) {
		return active, nil
	}
	if limit := obj.Spec.StartingDeadlineSeconds; limit != nil && time.Now().After(due.Add(time.Duration(*limit)*time.Second)) {
		return active, nil
	}
	switch obj.Spec.ConcurrencyPolicy {
	case batchv1.ForbidConcurrent:
		if len(active) > 0 {
			return active, nil
		}
	case batchv1.ReplaceConcurrent:
		for _, job := range active {
			if err := deleteJob(ctx, c, job); err != nil {
				return active, err
			}
		}
		active = nil
	}
	job := jobOf(obj, due)
	if err := c.Create(ctx, job); client.IgnoreAlreadyExists(err) != nil {
		return active, err
	}
	obj.Status.LastScheduleTime = new(metav1.NewTime(due))
	if job.UID != "" {
		active = append(active, job)
	}
	return active, nil
}

// jobOf returns the Job of a CronJob for a time. As with the real controller, the name of the Job is made from the time, so there is only
// one Job for each time.
func jobOf(obj *batchv1.CronJob, due time.Time) *batchv1.Job {
	template := obj.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.Namespace, Name: fmt.Sprintf("%s-%d", obj.Name, due.Unix()/60), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, cronJobKind)},
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, batchv1.CronJobScheduledTimestampAnnotation, due.In(zoneOf(obj)).Format(time.RFC3339))
	return job
}

func zoneOf(obj *batchv1.CronJob) *time.Location {
	zone, err := time.LoadLocation(ptr.Deref(obj.Spec.TimeZone, "UTC"))
	if err != nil {
		return time.UTC
	}
	return zone
}

// latestDue returns the latest time of the schedule between the last one that had a Job, or the creation, and now. If there is none, or if
// the schedule is invalid, it returns the zero time.
func latestDue(obj *batchv1.CronJob) (latest time.Time) {
	schedule, err := cron.ParseStandard(obj.Spec.Schedule)
	if err != nil {
		return latest
	}
	since := obj.CreationTimestamp.Time
	if obj.Status.LastScheduleTime != nil {
		since = obj.Status.LastScheduleTime.Time
	}
	now := time.Now()
	for due := schedule.Next(since.In(zoneOf(obj))); !due.IsZero() && !due.After(now); due = schedule.Next(due) {
		latest = due
	}
	return latest
}
