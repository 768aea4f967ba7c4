package feature

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
	"github.com/opblocks/opblocks/internal/record"
)

func TestNextRunAction(t *testing.T) {
	const content, other = "c", "o"
	job := func(edit ...func(*JobState)) *JobState {
		s := &JobState{UID: "x", content: content, finalizer: true}
		for _, e := range edit {
			e(s)
		}
		return s
	}
	held := func(s *JobState) { s.held = true }
	deleting := func(s *JobState) { s.deleting = true }
	collected := func(s *JobState) { s.deleting, s.collected = true, true }
	complete := func(s *JobState) { s.complete = true }
	failed := func(s *JobState) { s.failed = true }
	expired := func(s *JobState) { s.deleting, s.collected, s.expired = true, true, true }
	released := func(s *JobState) { s.finalizer = false }
	ofOther := func(s *JobState) { s.content = other }
	unknown := func(s *JobState) { s.content = "" }
	never := record.Run{}
	started, isComplete, isFailed := record.Run{State: record.RunStarted, Content: content, UID: "x", Set: "set"}, record.Run{State: record.RunComplete, Content: content}, record.Run{State: record.RunFailed, Content: content}
	cases := map[string]struct {
		reason string
		record record.Run
		job    *JobState
		want   RunAction
	}{
		"New":                   {"It has never run.", never, nil, RunCreate},
		"NewContent":            {"Another content has run.", record.Run{State: record.RunComplete, Content: other}, nil, RunCreate},
		"Vanished":              {"It was started, and somebody has deleted it.", started, nil, RunCreate},
		"Complete":              {"It has run, and its time to live has removed it.", isComplete, nil, RunNothing},
		"Failed":                {"It has failed, and its time to live has removed it.", isFailed, nil, RunNothing},
		"Held":                  {"The owner does not name it.", never, job(held), RunName},
		"HeldAndAnotherNamed":   {"The owner names one that is gone.", record.Run{State: record.RunStarted, Content: content, UID: "y", Set: "set"}, job(held), RunName},
		"HeldAndNamed":          {"The owner names it.", started, job(held), RunStart},
		"HeldAfterTheEnd":       {"A former leader has created it too late.", isComplete, job(held), RunDiscard},
		"HeldAfterAFailure":     {"The same for one that has failed.", isFailed, job(held), RunDiscard},
		"HeldOfOther":           {"The content has changed before it started.", never, job(held, ofOther), RunReplace},
		"Running":               {"It is a child as any other.", started, job(), RunApply},
		"RunningWithoutAClaim":  {"It sets suspend itself.", never, job(), RunApply},
		"RunningOfOther":        {"The content has changed.", started, job(ofOther), RunReplace},
		"CompleteOfOther":       {"The content has changed.", record.Run{State: record.RunComplete, Content: other}, job(ofOther, complete), RunReplace},
		"UnknownContent":        {"It was created without RunOnce.", never, job(unknown, complete), RunIdentify},
		"UnknownHeld":           {"Somebody has removed the annotation.", never, job(unknown, held), RunIdentify},
		"IsComplete":            {"Its end is recorded before anything can remove it.", started, job(complete), RunRecordComplete},
		"IsCompleteAndDeleted":  {"Also while somebody deletes it.", started, job(complete, deleting), RunRecordComplete},
		"IsCompleteAndExpired":  {"Also while its time to live removes it.", started, job(complete, expired), RunRecordComplete},
		"IsRecorded":            {"Now it may go.", isComplete, job(complete), RunRelease},
		"IsRecordedAndDeleted":  {"Now it may go.", isComplete, job(complete, deleting), RunRelease},
		"IsReleased":            {"There is nothing left to do.", isComplete, job(complete, released), RunNothing},
		"IsGoing":               {"It has run, so nothing waits for it.", isComplete, job(complete, released, collected), RunNothing},
		"HasFailed":             {"It stays, and is not repeated.", started, job(failed), RunApply},
		"HasFailedAndExpired":   {"Its time to live must not run it again.", started, job(failed, expired), RunRecordFailed},
		"HasFailedAndRecorded":  {"Now it may go.", isFailed, job(failed, expired), RunRelease},
		"HasFailedAndIsDeleted": {"Somebody wants it to run again, so nothing is recorded.", started, job(failed, deleting), RunRelease},
		"RunningAndDeleted":     {"Its pods have to go before the next one starts.", started, job(deleting), RunDeletePods},
		"RunningAndCollected":   {"The garbage collector deletes or orphans its pods.", started, job(collected), RunRelease},
		"HeldAndDeleted":        {"It has no pods.", started, job(held, deleting), RunRelease},
		"DeletedAndReleased":    {"It is waited for.", started, job(collected, released), RunWait},
		"ReplacedAndComplete":   {"The end of another content is of no interest.", started, job(ofOther, complete, collected), RunRelease},
		"ByHand":                {"Somebody has created it again after it has run: it is left alone.", isComplete, job(released), RunNothing},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, NextRunAction(test.record, content, test.job), test.reason)
		})
	}
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
	require.True(t, observeJob(job(batchv1.JobFailed, new(int32(60)), time.Minute)).expired, "at the end of its time to live")
	require.False(t, observeJob(job(batchv1.JobFailed, new(int32(60)), 59*time.Second)).expired, "somebody was faster")
	require.False(t, observeJob(job(batchv1.JobFailed, nil, time.Hour)).expired, "it has none")
	require.True(t, observeJob(job(batchv1.JobFailed, nil, 0)).failed)
	require.True(t, observeJob(job(batchv1.JobComplete, nil, 0)).complete)
	require.False(t, observeJob(job(batchv1.JobFailureTarget, nil, 0)).failed, "its pods are still terminating")
	require.False(t, observeJob(job(batchv1.JobSuccessCriteriaMet, nil, 0)).complete)
}

// The hash must not change with a release of this package. Otherwise an update of an operator would run every Job again.
func TestRunContent(t *testing.T) {
	hash := func(obj client.Object) string {
		k, err := owned.BuiltIn.Of(obj, scheme.Scheme)
		require.NoError(t, err)
		content, err := RunContent(k, obj)
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

func contentJob() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "migrate", Image: "migrate:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}},
		}}},
	}
}
