package scheduledjobs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/schedule"
)

// day is the day of all tests in this file.
var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(hour int) time.Time { return day.Add(time.Duration(hour) * time.Hour) }

func metaAt(hour int) *metav1.Time { return new(metav1.NewTime(at(hour))) }

// newRun returns the run of an hour of that day. The UID of its Job is the hour.
func newRun(hour int, state runState, edit ...func(*batchv1.Job)) run {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: jobName("web", "", at(hour)), UID: uidAt(hour)}}
	switch state {
	case held:
		job.Annotations = map[string]string{record.Held: "false"}
	case succeeded:
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		job.Status.CompletionTime = metaAt(hour + 1)
	case failed:
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	}
	for _, e := range edit {
		e(job)
	}
	return run{job: job, scheduled: at(hour), state: state}
}

func uidAt(hour int) types.UID { return types.UID(at(hour).Format("15:04")) }

func deleting(job *batchv1.Job) { job.DeletionTimestamp = metaAt(0) }

// hours returns the hours of the runs.
func hours(runs []run) (all []int) {
	for _, r := range runs {
		all = append(all, r.scheduled.Hour())
	}
	return all
}

func TestStateOf(t *testing.T) {
	is := func(conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: conditions}}
	}
	tests := map[string]struct {
		reason string
		job    *batchv1.Job
		want   runState
	}{
		"New":       {"a Job without conditions has started", is(), active},
		"Suspended": {"somebody suspended it: it goes on later", is(batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}), active},
		"Ending":    {"its pods are still being deleted", is(batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}), active},
		"Complete":  {"the condition is True", is(batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}), succeeded},
		"Failed":    {"the condition is True", is(batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}), failed},
		"NotFailed": {"the condition is False", is(batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}), active},
		"Held":      {"it has the annotation", newRun(1, held).job, held},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, stateOf(tc.job), tc.reason) })
	}
}

func TestObserve(t *testing.T) {
	tests := map[string]struct {
		reason string
		status Status
		runs   []run
		want   Status
	}{
		"Nothing": {reason: "there are no Jobs"},
		"Success": {
			reason: "the latest completion counts, whichever Job is listed first",
			status: Status{Status: schedule.Status{LastScheduleTime: metaAt(9)}},
			runs:   []run{newRun(3, succeeded), newRun(2, succeeded), newRun(4, failed)},
			want:   Status{Status: schedule.Status{LastScheduleTime: metaAt(9)}, LastSuccessfulTime: metaAt(4)},
		},
		"EarlierSuccess": {
			reason: "the time does not go back when the Job is gone",
			status: Status{Status: schedule.Status{LastScheduleTime: metaAt(9)}, LastSuccessfulTime: metaAt(8)},
			runs:   []run{newRun(2, succeeded)},
			want:   Status{Status: schedule.Status{LastScheduleTime: metaAt(9)}, LastSuccessfulTime: metaAt(8)},
		},
		"LostStatus": {
			reason: "somebody removed the status: the Jobs show what was run",
			runs:   []run{newRun(2, active), newRun(1, active)},
			want:   Status{Status: schedule.Status{LastScheduleTime: metaAt(2)}, LastJobName: jobName("web", "", at(2)), LastJobUID: uidAt(2)},
		},
		"OldStatus": {
			reason: "the status was restored from a backup",
			status: Status{Status: schedule.Status{LastScheduleTime: metaAt(1)}, LastJobName: "old", LastJobUID: "old"},
			runs:   []run{newRun(2, failed)},
			want:   Status{Status: schedule.Status{LastScheduleTime: metaAt(2)}, LastJobName: jobName("web", "", at(2)), LastJobUID: uidAt(2)},
		},
		"Held": {
			reason: "a held Job was not started",
			status: Status{Status: schedule.Status{LastScheduleTime: metaAt(1)}},
			runs:   []run{newRun(2, held)},
			want:   Status{Status: schedule.Status{LastScheduleTime: metaAt(1)}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			observe(&tc.status, tc.runs)
			if diff := cmp.Diff(tc.want, tc.status); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// decided has the fields of a decision that the tests compare.
type decided struct {
	Verdict schedule.Verdict
	Hour    int
	Missed  int
}

func TestDecide(t *testing.T) {
	hourly := Spec{Schedule: "0 * * * *"}
	minuteLate := Spec{Schedule: "0 * * * *", Options: schedule.Options{StartingDeadlineSeconds: new(int64(60))}}
	recorded := func(hour int) Status {
		return Status{Status: schedule.Status{LastScheduleTime: metaAt(hour)}, LastJobUID: uidAt(hour)}
	}
	tests := map[string]struct {
		reason string
		now    time.Time
		spec   Spec
		status Status
		runs   []run
		want   decided
	}{
		"Due":        {reason: "an hour has passed since the last run", now: at(3), spec: hourly, status: recorded(2), want: decided{schedule.Start, 3, 0}},
		"NotDue":     {reason: "the run of this hour is recorded", now: at(3), spec: hourly, status: recorded(3), want: decided{schedule.Waiting, 0, 0}},
		"Missed":     {reason: "the latest of several is run", now: at(5), spec: hourly, status: recorded(2), want: decided{schedule.Start, 5, 2}},
		"Started":    {reason: "the Job of the recorded run was started", now: at(3), spec: hourly, status: recorded(3), runs: []run{newRun(3, active)}, want: decided{schedule.Waiting, 0, 0}},
		"Held":       {reason: "the operator crashed after the record: the run starts now", now: at(3), spec: hourly, status: recorded(3), runs: []run{newRun(3, held)}, want: decided{schedule.Start, 3, 0}},
		"HeldForOld": {reason: "a later run is due: the held one is missed", now: at(4), spec: hourly, status: recorded(3), runs: []run{newRun(3, held)}, want: decided{schedule.Start, 4, 1}},
		"HeldTooLate": {
			reason: "the deadline passed while the operator was down", now: at(3).Add(2 * time.Minute), spec: minuteLate, status: recorded(3),
			runs: []run{newRun(3, held)}, want: decided{schedule.TooLate, 3, 1},
		},
		"HeldByAnother": {
			reason: "the run is recorded with another Job, which is gone: a process that saw the past created this one", now: at(3), spec: hourly,
			status: recorded(3), runs: []run{newRun(3, held, func(job *batchv1.Job) { job.UID = "another" })}, want: decided{schedule.Waiting, 0, 0},
		},
		"HeldUnrecorded": {reason: "the operator crashed before the record", now: at(3), spec: hourly, status: recorded(2), runs: []run{newRun(3, held)}, want: decided{schedule.Start, 3, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			last := tc.status.LastScheduleTime
			first := tc.status // in the first reconcile, long ago, the schedule took effect
			_, err := first.Decide(at(0), "uid", tc.spec.Schedule, tc.spec.Options)
			require.NoError(t, err)
			due, err := decide(tc.now, "uid", &tc.spec, &first, tc.runs)
			require.NoError(t, err)
			got := decided{due.Verdict, due.ScheduledTime.Hour(), due.Missed}
			if due.ScheduledTime.IsZero() {
				got.Hour = 0
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.Equal(t, last, first.LastScheduleTime, "only a run that starts or is too late changes what is recorded")
		})
	}
}

func TestPlanStart(t *testing.T) {
	const allow, forbid, replace = batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent
	tests := map[string]struct {
		reason   string
		policy   batchv1.ConcurrencyPolicy
		runs     []run
		waitsFor []int
		held     []int
		replaced []int
	}{
		"First":            {reason: "there are no Jobs", policy: forbid},
		"Finished":         {reason: "Jobs that finished are in nobody's way", policy: forbid, runs: []run{newRun(1, succeeded), newRun(2, failed)}},
		"Allow":            {reason: "it starts beside another one", policy: allow, runs: []run{newRun(2, active)}},
		"Forbid":           {reason: "it waits for the other one", policy: forbid, runs: []run{newRun(2, active)}, waitsFor: []int{2}},
		"ForbidDeleted":    {reason: "the pods of a Job that is being deleted may still run", policy: forbid, runs: []run{newRun(2, active, deleting)}, waitsFor: []int{2}},
		"Replace":          {reason: "all others are deleted", policy: replace, runs: []run{newRun(1, active), newRun(2, active), newRun(0, succeeded)}, replaced: []int{1, 2}},
		"ReplaceDeleted":   {reason: "what is being deleted is not deleted again", policy: replace, runs: []run{newRun(2, active, deleting)}},
		"Held":             {reason: "its Job exists already", policy: replace, runs: []run{newRun(3, held), newRun(2, active)}, held: []int{3}, replaced: []int{2}},
		"HeldAndForbidden": {reason: "the other Job has to end nevertheless", policy: forbid, runs: []run{newRun(3, held), newRun(2, active)}, held: []int{3}, waitsFor: []int{2}},
		"HeldForAnother":   {reason: "the held Job of another run is in nobody's way", policy: forbid, runs: []run{newRun(2, held)}},
		"HeldAndDeleted":   {reason: "its name is taken until it is gone", policy: allow, runs: []run{newRun(3, held, deleting)}, waitsFor: []int{3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := planStart(at(3), tc.policy, tc.runs)
			one := func(r *run) []int {
				if r == nil {
					return nil
				}
				return hours([]run{*r})
			}
			if diff := cmp.Diff([][]int{tc.waitsFor, tc.held, tc.replaced}, [][]int{one(p.waitsFor), one(p.held), hours(p.replaced)}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAbandoned(t *testing.T) {
	runs := []run{newRun(1, held), newRun(2, held), newRun(3, active), newRun(4, held, deleting)}
	tests := map[string]struct {
		reason string
		due    schedule.Decision
		want   []int
	}{
		"Start":       {"the run that is due keeps its Job", schedule.Decision{Verdict: schedule.Start, ScheduledTime: at(2)}, []int{1}},
		"Deferred":    {"it starts after the blackout window", schedule.Decision{Verdict: schedule.Deferred, ScheduledTime: at(2)}, []int{1}},
		"TooLate":     {"it will never start", schedule.Decision{Verdict: schedule.TooLate, ScheduledTime: at(2)}, []int{1, 2}},
		"Waiting":     {"nothing is due", schedule.Decision{Verdict: schedule.Waiting}, []int{1, 2}},
		"Suspended":   {"the schedule does not run, or is invalid", schedule.Decision{}, []int{1, 2}},
		"ClockBehind": {"what is due is not known before the clock has caught up", schedule.Decision{Verdict: schedule.ClockBehind}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, hours(abandoned(tc.due, runs)), tc.reason) })
	}
}

func TestExpired(t *testing.T) {
	mixed := []run{
		newRun(5, succeeded), newRun(1, failed), newRun(3, succeeded), newRun(2, succeeded), newRun(6, active), newRun(4, failed), newRun(7, held),
	}
	tests := map[string]struct {
		reason             string
		runs               []run
		successful, failed int
		want               []int
	}{
		"Within":   {reason: "both limits hold", runs: mixed, successful: 3, failed: 2},
		"Oldest":   {reason: "the oldest of each kind go, the oldest first", runs: mixed, successful: 1, failed: 1, want: []int{1, 2, 3}},
		"Zero":     {reason: "none is kept", runs: mixed, want: []int{1, 2, 3, 4, 5}},
		"Negative": {reason: "an invalid limit deletes nothing", runs: mixed, successful: -1, failed: -1},
		"Deleting": {reason: "what is being deleted is not deleted again, and does not count", runs: []run{newRun(2, failed, deleting), newRun(1, failed)}, failed: 1},
		"Running":  {reason: "a Job that has not finished stays", runs: []run{newRun(1, active), newRun(2, held)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, hours(expired(tc.runs, tc.successful, tc.failed)), tc.reason)
		})
	}
}
