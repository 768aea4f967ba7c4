package ownedresources

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewJob returns a Job with the name and namespace of its owner. It is a plain struct: edit it before it is applied.
//
// RestartPolicy is Never: each attempt has a pod of its own, whose log stays. BackoffLimit is 6, as the API server's
// default: the Job fails after seven attempts, whose pauses add up to about ten minutes. A failed Job stays failed, so a
// low limit turns a short outage into a permanent failure.
//
// The pods carry no labels of the owner: otherwise a [NewService], a [NewPodDisruptionBudget] or a [NewNetworkPolicy] of the
// same owner would select them too. The label batch.kubernetes.io/job-name, which the API server sets, finds them. Pods
// and containers meet the Pod Security Standard "restricted": see [PodTemplate].
//
// The pod template is immutable once the Job exists. Name the Job after what it does, such as the version that it migrates to,
// or use [Child.Recreate]. TTLSecondsAfterFinished is unset: if a Job is removed, [Ensure] creates it again, and it runs again.
// The name must be a label value, of at most 63 characters: check it with [ValidateName].
//
// NewJob does not change containers.
func NewJob(owner client.Object, containers ...corev1.Container) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: ObjectMeta(owner), Spec: jobSpec(containers)}
}

// NewCronJob returns a CronJob with the name and namespace of its owner, and a schedule in the format of cron
// (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax). It is a plain struct: edit it
// before it is applied.
//
// Its Jobs have the spec of a [NewJob], and [Labels]. ConcurrencyPolicy is Forbid: a run is skipped while the one before it is
// active. With Allow, the API server's default, two runs may work on the same data, and slow runs pile up. TimeZone is unset:
// the schedule is in the time zone of the kube-controller-manager, which is usually UTC.
//
// A change applies to later Jobs only. The API server refuses a name of more than 52 characters: check it with
// [ValidateName].
//
// NewCronJob does not change containers.
func NewCronJob(owner client.Object, schedule string, containers ...corev1.Container) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: ObjectMeta(owner),
		Spec: batchv1.CronJobSpec{
			Schedule:          schedule,
			ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: Labels(owner)},
				Spec:       jobSpec(containers),
			},
		},
	}
}

func jobSpec(containers []corev1.Container) batchv1.JobSpec {
	pod := podSpec(containers)
	pod.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{
		BackoffLimit: new(int32(6)),
		Template:     corev1.PodTemplateSpec{Spec: pod},
	}
}
