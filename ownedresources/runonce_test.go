package ownedresources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
)

func TestNextRunAction(t *testing.T) {
	const content, other = "c", "o"
	job := func(edit ...func(*feature.JobState)) *feature.JobState {
		s := &feature.JobState{Uid: "x", Content: content, Finalizer: true}
		for _, e := range edit {
			e(s)
		}
		return s
	}
	held := func(s *feature.JobState) { s.Held = true }
	deleting := func(s *feature.JobState) { s.Deleting = true }
	collected := func(s *feature.JobState) { s.Deleting, s.Collected = true, true }
	complete := func(s *feature.JobState) { s.Complete = true }
	failed := func(s *feature.JobState) { s.Failed = true }
	expired := func(s *feature.JobState) { s.Deleting, s.Collected, s.Expired = true, true, true }
	released := func(s *feature.JobState) { s.Finalizer = false }
	ofOther := func(s *feature.JobState) { s.Content = other }
	unknown := func(s *feature.JobState) { s.Content = "" }
	never := record.Run{}
	started, isComplete, isFailed := record.Run{State: record.RunStarted, Content: content, UID: "x", Set: "set"}, record.Run{State: record.RunComplete, Content: content}, record.Run{State: record.RunFailed, Content: content}
	cases := map[string]struct {
		reason string
		record record.Run
		job    *feature.JobState
		want   feature.RunAction
	}{
		"New":                   {"It has never run.", never, nil, feature.RunCreate},
		"NewContent":            {"Another content has run.", record.Run{State: record.RunComplete, Content: other}, nil, feature.RunCreate},
		"Vanished":              {"It was started, and somebody has deleted it.", started, nil, feature.RunCreate},
		"Complete":              {"It has run, and its time to live has removed it.", isComplete, nil, feature.RunNothing},
		"Failed":                {"It has failed, and its time to live has removed it.", isFailed, nil, feature.RunNothing},
		"Held":                  {"The owner does not name it.", never, job(held), feature.RunName},
		"HeldAndAnotherNamed":   {"The owner names one that is gone.", record.Run{State: record.RunStarted, Content: content, UID: "y", Set: "set"}, job(held), feature.RunName},
		"HeldAndNamed":          {"The owner names it.", started, job(held), feature.RunStart},
		"HeldAfterTheEnd":       {"A former leader has created it too late.", isComplete, job(held), feature.RunDiscard},
		"HeldAfterAFailure":     {"The same for one that has failed.", isFailed, job(held), feature.RunDiscard},
		"HeldOfOther":           {"The content has changed before it started.", never, job(held, ofOther), feature.RunReplace},
		"Running":               {"It is a child as any other.", started, job(), feature.RunApply},
		"RunningWithoutAClaim":  {"It sets suspend itself.", never, job(), feature.RunApply},
		"RunningOfOther":        {"The content has changed.", started, job(ofOther), feature.RunReplace},
		"CompleteOfOther":       {"The content has changed.", record.Run{State: record.RunComplete, Content: other}, job(ofOther, complete), feature.RunReplace},
		"UnknownContent":        {"It was created without RunOnce.", never, job(unknown, complete), feature.RunIdentify},
		"UnknownHeld":           {"Somebody has removed the annotation.", never, job(unknown, held), feature.RunIdentify},
		"IsComplete":            {"Its end is recorded before anything can remove it.", started, job(complete), feature.RunRecordComplete},
		"IsCompleteAndDeleted":  {"Also while somebody deletes it.", started, job(complete, deleting), feature.RunRecordComplete},
		"IsCompleteAndExpired":  {"Also while its time to live removes it.", started, job(complete, expired), feature.RunRecordComplete},
		"IsRecorded":            {"Now it may go.", isComplete, job(complete), feature.RunRelease},
		"IsRecordedAndDeleted":  {"Now it may go.", isComplete, job(complete, deleting), feature.RunRelease},
		"IsReleased":            {"There is nothing left to do.", isComplete, job(complete, released), feature.RunNothing},
		"IsGoing":               {"It has run, so nothing waits for it.", isComplete, job(complete, released, collected), feature.RunNothing},
		"HasFailed":             {"It stays, and is not repeated.", started, job(failed), feature.RunApply},
		"HasFailedAndExpired":   {"Its time to live must not run it again.", started, job(failed, expired), feature.RunRecordFailed},
		"HasFailedAndRecorded":  {"Now it may go.", isFailed, job(failed, expired), feature.RunRelease},
		"HasFailedAndIsDeleted": {"Somebody wants it to run again, so nothing is recorded.", started, job(failed, deleting), feature.RunRelease},
		"RunningAndDeleted":     {"Its pods have to go before the next one starts.", started, job(deleting), feature.RunDeletePods},
		"RunningAndCollected":   {"The garbage collector deletes or orphans its pods.", started, job(collected), feature.RunRelease},
		"HeldAndDeleted":        {"It has no pods.", started, job(held, deleting), feature.RunRelease},
		"DeletedAndReleased":    {"It is waited for.", started, job(collected, released), feature.RunWait},
		"ReplacedAndComplete":   {"The end of another content is of no interest.", started, job(ofOther, complete, collected), feature.RunRelease},
		"ByHand":                {"Somebody has created it again after it has run: it is left alone.", isComplete, job(released), feature.RunNothing},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, feature.NextRunAction(test.record, content, test.job), test.reason)
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

// The hash must be the same in every version of this package: otherwise an update of an operator would run every Job again.
func TestRunContent(t *testing.T) {
	hash := func(obj client.Object) string {
		k, err := owned.BuiltIn.Of(obj, scheme.Scheme)
		require.NoError(t, err)
		content, err := feature.RunContent(k, obj)
		require.NoError(t, err)
		return content
	}
	first := hash(contentJob())
	require.Equal(t, "ed9ee7910a1397f832e3ddb0a0608c1c", first, "never change this value")
	cases := map[string]struct {
		reason string
		edit   func(*batchv1.Job)
		same   bool
	}{
		"Image":       {"Another version has to run.", func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "migrate:2" }, false},
		"Completions": {"A live Job cannot take it over.", func(j *batchv1.Job) { j.Spec.Completions = new(int32(2)) }, false},
		"Labels":      {"They are applied to the live Job.", func(j *batchv1.Job) { j.Labels["app"] = "other" }, true},
		"TimeToLive":  {"So is this.", func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32(9)) }, true},
		"Backoff":     {"So is this.", func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(9)) }, true},
		"Deadline":    {"So is this.", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(9)) }, true},
		"Parallelism": {"So is this.", func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(9)) }, true},
		"Suspend":     {"A queue may suspend it.", func(j *batchv1.Job) { j.Spec.Suspend = new(true) }, true},
		"Status":      {"Nobody desires a status.", func(j *batchv1.Job) { j.Status.Active = 3 }, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			job := contentJob()
			test.edit(job)
			require.Equal(t, test.same, first == hash(job), test.reason)
		})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(contentJob())
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	require.NotEmpty(t, hash(u))
}

func TestObserveJob(t *testing.T) {
	end := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	job := func(condition batchv1.JobConditionType, ttl *int32, deletedAfter time.Duration) *batchv1.Job {
		j := contentJob()
		j.Spec.TTLSecondsAfterFinished = ttl
		j.DeletionTimestamp = &metav1.Time{Time: end.Add(deletedAfter)}
		j.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, LastTransitionTime: end},
			{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: end},
		}
		return j
	}
	require.True(t, feature.ObserveJob(job(batchv1.JobFailed, new(int32(60)), time.Minute)).Expired, "at the end of its time to live")
	require.False(t, feature.ObserveJob(job(batchv1.JobFailed, new(int32(60)), 59*time.Second)).Expired, "somebody was faster")
	require.False(t, feature.ObserveJob(job(batchv1.JobFailed, nil, time.Hour)).Expired, "it has none")
	require.True(t, feature.ObserveJob(job(batchv1.JobFailed, nil, 0)).Failed)
	require.True(t, feature.ObserveJob(job(batchv1.JobComplete, nil, 0)).Complete)
	require.False(t, feature.ObserveJob(job(batchv1.JobFailureTarget, nil, 0)).Failed, "its pods are still terminating")
	require.False(t, feature.ObserveJob(job(batchv1.JobSuccessCriteriaMet, nil, 0)).Complete)
}

// Somebody has removed the finalizers of the owner by hand, and has created it again.
func TestRunOnceReleasesAJobOfAFormerOwner(t *testing.T) {
	env := newTestEnv(t)
	former := contentJob()
	former.Namespace, former.Finalizers = env.namespace, []string{record.RunOnce}
	reference := ownerOf(t, env).Reference
	reference.UID = "former"
	former.OwnerReferences = []metav1.OwnerReference{reference}
	require.NoError(t, env.other.Create(t.Context(), former))
	set := Ensure(Build(func(*configMap) *batchv1.Job { return contentJob() }, RunOnce()))
	requireWaits(t, set.Reconcile(t.Context(), env.client, env.owner), "ChildTerminating")
	env.live(t, former)
	require.Contains(t, former.Finalizers, record.RunOnce, "the garbage collector has not come yet")

	require.NoError(t, env.other.Delete(t.Context(), former, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	requireWaits(t, set.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
	var job batchv1.Job
	env.live(t, &job)
	require.Equal(t, env.owner.UID, job.OwnerReferences[0].UID)
	require.False(t, *job.Spec.Suspend)

	env.sent.Sent()
	requireWaits(t, set.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
	require.Equal(t, []string{"GET jobs", "GET jobs"}, env.sent.Sent(), "nothing is sent while it runs")
}

// A Job for a queue is created as it is.
func TestRunOnceOfAJobThatSetsSuspend(t *testing.T) {
	env := newTestEnv(t)
	set := Ensure(Build(func(*configMap) *batchv1.Job {
		job := contentJob()
		job.Spec.Suspend = new(true)
		return job
	}, RunOnce()))
	requireWaits(t, set.Reconcile(t.Context(), env.client, env.owner), "JobRunning")
	require.Equal(t, []string{"GET jobs", "GET configmaps", "POST jobs", "GET jobs"}, env.sent.Sent())
	var job batchv1.Job
	env.live(t, &job)
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
