package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webJob returns a Job that is named as the owner.
func webJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: "migrate:1"}},
		}}},
	}
}

// rereadOwner reads the owner as the next pass would.
func (env *testEnv) rereadOwner(t *testing.T) {
	t.Helper()
	require.NoError(t, env.other.Get(t.Context(), client.ObjectKeyFromObject(env.owner), env.owner))
}

// completeJob sets the status as the Job controller does.
func (env *testEnv) completeJob(t *testing.T) {
	t.Helper()
	var job batchv1.Job
	env.live(t, &job)
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	require.NoError(t, env.other.Status().Update(t.Context(), &job))
}

// The owner is itself a child of such a set, and the Job gets a copy of its annotations.
func TestRunOnceOfAJobWithCopiedMetadata(t *testing.T) {
	env := newTestEnv(t)
	s := Ensure(Build(func(*configMap) *batchv1.Job {
		job := webJob()
		job.Annotations = map[string]string{AnnotationApplied: "v1:created:0123456789abcdef0123456789abcdef", AnnotationSet: "parent"}
		return job
	}, RunOnce()))
	for range 3 {
		requireWaits(t, s.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
		env.rereadOwner(t)
	}
	var job batchv1.Job
	env.live(t, &job)
	require.NotEmpty(t, job.Annotations[AnnotationContent], "without it nobody knows what has run")
	env.completeJob(t)
	require.NoError(t, s.Reconcile(t.Context(), env.client, env.owner))
}

// A queue starts the Job.
func TestRunOnceWithCreateOnly(t *testing.T) {
	env := newTestEnv(t)
	label := "before"
	s := Ensure(Build(func(*configMap) *batchv1.Job {
		job := webJob()
		job.Spec.Suspend, job.Labels = new(true), map[string]string{"label": label}
		return job
	}, RunOnce(), CreateOnly(func(job *batchv1.Job) { job.Spec.Suspend = nil })))
	var job batchv1.Job
	for _, label = range []string{"before", "after", "after"} {
		requireWaits(t, s.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
		env.rereadOwner(t)
		env.live(t, &job)
		require.Equal(t, label, job.Labels["label"])
		require.True(t, *job.Spec.Suspend, "a field that is set on creation only keeps its value")
	}
}
