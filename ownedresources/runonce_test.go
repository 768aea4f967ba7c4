package ownedresources

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
)

// Somebody has removed the finalizers of a deleted owner by hand, and has created the owner again. Its Job still has
// the finalizer of RunOnce.
func TestRunOnceReleasesAJobOfAFormerOwner(t *testing.T) {
	env := newEnvInMemory(t)
	former := contentJob()
	former.Namespace, former.Finalizers = env.Namespace, []string{record.RunOnce}
	reference := env.OwnerOf(t).Reference
	reference.UID = "former"
	former.OwnerReferences = []metav1.OwnerReference{reference}
	require.NoError(t, env.Other.Create(t.Context(), former))
	set := Ensure(Build(func(*Shop) *batchv1.Job { return contentJob() }).RunOnce())
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "ChildTerminating")
	env.Live(t, former)
	require.Contains(t, former.Finalizers, record.RunOnce, "the garbage collector has not come yet")

	require.NoError(t, env.Other.Delete(t.Context(), former, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
	var job batchv1.Job
	env.Live(t, &job)
	require.Equal(t, env.Owner.UID, job.OwnerReferences[0].UID)
	require.False(t, *job.Spec.Suspend)

	env.Requests.Sent()
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
	require.Equal(t, []string{"GET jobs", "GET jobs"}, env.Requests.Sent(), "nothing is sent while it runs")
}

// The cache of a process that has just started may contain an old version of the owner, in which its Job has not run
// yet.
func TestRunOnceDoesNotRunAgainForAnOldOwner(t *testing.T) {
	env := newEnvInMemory(t)
	set := Ensure(Build(func(*Shop) *batchv1.Job { return contentJob() }).RunOnce())
	old := env.Owner.DeepCopy()
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
	var job batchv1.Job
	env.Live(t, &job)
	ownedtest.ByHand(t, env.Server, env.Owner, func(shop *Shop) {
		run := record.Run{State: record.RunComplete, Content: job.Annotations[record.Content], Set: set.set.Name}
		shop.Annotations[record.RunPrefix+"web"] = run.String()
	})
	ownedtest.ByHand(t, env.Server, &job, func(job *batchv1.Job) { job.Finalizers = nil })
	require.NoError(t, env.Other.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)))

	require.True(t, apierrors.IsConflict(set.Reconcile(t.Context(), env.Client, old)))
	require.False(t, env.Exists(t, contentJob()), "it has run")
	require.NoError(t, set.Reconcile(t.Context(), env.Client, env.Owner), "the owner as it is now says so")
}

// A Job for a queue sets suspend itself, and RunOnce does not change it.
func TestRunOnceOfAJobThatSetsSuspend(t *testing.T) {
	env := newEnvInMemory(t)
	set := Ensure(Build(func(*Shop) *batchv1.Job {
		job := contentJob()
		job.Spec.Suspend = new(true)
		return job
	}).RunOnce())
	requireWaits(t, set.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
	require.Equal(t, []string{"GET jobs", "GET shops", "POST jobs", "GET jobs"}, env.Requests.Sent())
	var job batchv1.Job
	env.Live(t, &job)
	require.True(t, *job.Spec.Suspend)
	require.Empty(t, job.Annotations[record.Held])
	require.Contains(t, job.Finalizers, record.RunOnce)
}

func TestUndesiredRuns(t *testing.T) {
	cases := map[string]struct {
		reason, name, value string
		undesired           bool
	}{
		"Ours":         {"Nobody else removes it.", "old", "v1:complete:abc:jobs", true},
		"Started":      {"Its Job may be gone too.", "old", "v1:started:abc:uid:jobs", true},
		"FormerName":   {"A release has renamed the step.", "old", "v1:complete:abc:migrations", true},
		"OfAnotherSet": {"That set knows whether it desires the Job.", "old", "v1:complete:abc:other", false},
		"Desired":      {"The Job must not run again.", "web", "v1:complete:abc:jobs", false},
		"NotOurs":      {"This package does not write such a value.", "old", "jobs", false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			key := record.RunPrefix + test.name
			o := &owned.Owner{Namespace: "shop", Set: "jobs", FormerSets: []string{"migrations"}, Object: &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: test.value, "note": test.value}},
			}}
			job := contentJob()
			job.Namespace = "shop"
			got := set.UndesiredRuns(o, set.DesiredNames{Objects: []owned.Declared{{Object: job, Options: &owned.Options{RunOnce: true}}}})
			require.Equal(t, test.undesired, len(got) == 1 && got[0] == key, test.reason)
		})
	}
}

func contentJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "migrate", Image: "migrate:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
		}}},
	}
}
