package ownedresources

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// webJob returns a Job that has the owner's name.
func webJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: "migrate:1"}},
		}}},
	}
}

// completeJob sets the status as the Job controller does.
func (env *serverEnv) completeJob(t *testing.T) {
	t.Helper()
	var job batchv1.Job
	env.Live(t, &job)
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	require.NoError(t, env.Other.Status().Update(t.Context(), &job))
}

// The owner is itself a child of another set, and the function copies the owner's annotations into the Job.
func TestRunOnceOfAJobWithCopiedMetadata(t *testing.T) {
	env := newEnvInMemory(t)
	s := Ensure(Build(func(*Shop) *batchv1.Job {
		job := webJob()
		job.Annotations = map[string]string{record.Applied: "v1:created:0123456789abcdef0123456789abcdef", record.Set: "parent"}
		return job
	}).RunOnce())
	for range 3 {
		requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
		env.RereadOwner(t)
	}
	var job batchv1.Job
	env.Live(t, &job)
	require.NotEmpty(t, job.Annotations[record.Content], "without it nobody knows what has run")
	env.completeJob(t)
	require.NoError(t, s.Reconcile(t.Context(), env.Client, env.Owner))
}

// The Job is created suspended and a queue resumes it, so suspend is set with CreateOnly.
func TestRunOnceWithCreateOnly(t *testing.T) {
	env := newEnvInMemory(t)
	label := "before"
	s := Ensure(with(Build(func(*Shop) *batchv1.Job {
		job := webJob()
		job.Spec.Suspend, job.Labels = new(true), map[string]string{"label": label}
		return job
	}), withRunOnce(), withCreateOnly(func(job *batchv1.Job) { job.Spec.Suspend = nil })))
	var job batchv1.Job
	for _, label = range []string{"before", "after", "after"} {
		requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
		env.RereadOwner(t)
		env.Live(t, &job)
		require.Equal(t, label, job.Labels["label"])
		require.True(t, *job.Spec.Suspend, "a field that is set on creation only keeps its value")
	}
}

// Pods have the Job's label, although the Job does not exist.
func TestRunOnceWaitsForFormerPods(t *testing.T) {
	for name, test := range map[string]struct {
		reason     string
		controller *metav1.OwnerReference
		phase      corev1.PodPhase
		label      string
		waits      bool
	}{
		"Orphan":     {reason: "Somebody has deleted its Job without it.", label: "web", waits: true},
		"OfFormer":   {reason: "The garbage collector has not come yet.", label: "web", controller: &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "web", UID: "former"}, waits: true},
		"OfAnother":  {reason: "It has a controller that has nothing to do with the Job.", label: "web", controller: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "other"}},
		"OtherLabel": {reason: "It is the pod of another Job.", label: "webs"},
		"Succeeded":  {reason: "It has ended.", label: "web", phase: corev1.PodSucceeded},
		"Failed":     {reason: "It has ended.", label: "web", phase: corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			pod := env.createPod(t, "web-abcde", map[string]string{batchv1.JobNameLabel: test.label})
			if test.controller != nil {
				test.controller.Controller = new(true)
				pod.OwnerReferences = []metav1.OwnerReference{*test.controller}
				require.NoError(t, env.Other.Update(t.Context(), pod))
			}
			if test.phase != "" {
				pod.Status.Phase = test.phase
				require.NoError(t, env.Other.Status().Update(t.Context(), pod))
			}
			s := Ensure(Build(func(*Shop) *batchv1.Job { return webJob() }).RunOnce())
			s.set.APIReader = env.Client // a manager would set it
			err := s.Reconcile(t.Context(), env.Client, env.Owner)
			if !test.waits {
				requireWaits(t, err, "JobRunning")
				return
			}
			requireWaits(t, err, "FormerPodsRunning")
			require.EqualError(t, err, "Job "+env.Namespace+"/web is not created while Pod "+env.Namespace+"/web-abcde of a former Job of this name runs: wait for its end, or delete it", test.reason)
			wait, _ := errors.AsType[*WaitingError](err)
			_, after := wait.Waiting()
			require.Equal(t, 10*time.Second, after, "pods are not watched")
			require.False(t, env.Exists(t, webJob()))
			require.NoError(t, env.Other.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
			requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
		})
	}
}

// Somebody deletes the Job with orphan propagation, and its pods keep running.
func TestRunOnceAfterAnOrphaningDeletion(t *testing.T) {
	env := newClusterEnv(t)
	set, _ := env.start(t, Ensure(Build(func(*Shop) *batchv1.Job {
		job := webJob()
		job.Spec.Template.Annotations = map[string]string{controlplane.HoldAnnotation: "true"}
		return job
	}).RunOnce()))
	pods := func() []corev1.Pod {
		var all corev1.PodList
		require.NoError(t, env.Client.List(t.Context(), &all, client.InNamespace(env.Namespace)))
		return all.Items
	}
	env.Create(t, env.Owner)
	require.Eventually(t, func() bool { return len(pods()) == 1 }, controlplane.Patience, 10*time.Millisecond)
	first := pods()[0]
	job := webJob()
	job.Namespace = env.Namespace
	waitFor(t, env, job, func(j *batchv1.Job) bool { return j.DeletionTimestamp == nil })
	require.NoError(t, env.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	set.waitForError(t, func(err error) bool {
		wait, waits := errors.AsType[*WaitingError](err)
		return waits && ownedtest.ReasonOf(wait) == feature.ReasonPodsRunning
	})
	require.ErrorContains(t, set.lastError(), "Pod "+env.Namespace+"/"+first.Name)
	env.waitGone(t, job)
	require.Len(t, pods(), 1)
	require.Empty(t, pods()[0].OwnerReferences)
	require.NoError(t, env.Client.Delete(t.Context(), &first, client.GracePeriodSeconds(0)))
	former := job.UID
	waitFor(t, env, job, func(j *batchv1.Job) bool { return j.UID != former })
	require.Eventually(t, func() bool { return len(pods()) == 1 && pods()[0].UID != first.UID }, controlplane.Patience, 10*time.Millisecond)
}

// When no set desires a Job any more, the owner's annotation for the Job is removed. When another step takes the Job
// over, the annotation stays.
func TestRunOnceIsForgotten(t *testing.T) {
	env := newEnvInMemory(t)
	wantedBy, missing := "one", false
	build := func(step string) AnyChild[*Shop] {
		input := From(func(context.Context, client.Reader, *Shop) (bool, error) {
			if missing && step == "two" {
				return false, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "settings")
			}
			return wantedBy == step, nil
		}, Reads(&corev1.ConfigMap{}, func(*Shop) []types.NamespacedName { return nil }))
		return BuildFrom(input, func(_ *Shop, wanted bool) (*batchv1.Job, error) {
			if !wanted {
				return nil, nil
			}
			return webJob(), nil
		}).RunOnce()
	}
	r := reconcile.New(env.Client, reconcile.Named("one", Ensure(build("one"))), reconcile.Named("two", Ensure(build("two")))).WithoutStatus()
	pass := func() string {
		for range 2 {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(env.Owner)})
			require.NoError(t, err)
		}
		env.RereadOwner(t)
		return env.Owner.Annotations[record.RunPrefix+"web"]
	}
	require.Contains(t, pass(), "v1:started:")
	env.completeJob(t)
	record := pass()
	require.Regexp(t, "^v1:complete:[0-9a-f]{32}:one$", record)
	require.NoError(t, env.Other.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "web"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))

	wantedBy, missing = "two", true
	require.Equal(t, record, pass(), "nobody knows what the second step desires")
	missing = false
	record = strings.TrimSuffix(record, "one") + "two"
	require.Equal(t, record, pass(), "the second step desires it")
	require.False(t, env.Exists(t, webJob()), "it has run")
	wantedBy = "nobody"
	require.Empty(t, pass())
	env.Requests.Sent()
	require.Empty(t, pass())
	require.NotContains(t, env.Requests.Sent(), "PATCH configmaps")
	wantedBy = "one"
	require.Contains(t, pass(), "v1:started:", "it has come back, so it runs again")
	require.True(t, env.Exists(t, webJob()))

	wantedBy = "nobody" // nobody desires it while it runs
	require.Empty(t, pass())
	require.False(t, env.Exists(t, webJob()))
}
