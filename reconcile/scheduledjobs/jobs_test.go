package scheduledjobs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

var two = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

const jobAtTwo, jobAtThree = "web-29538840", "web-29538900"

// harness has the step and controller-runtime's fake client. The test sets the clock of the step.
type harness struct {
	client.Client
	clock      *clocktesting.FakePassiveClock
	reconciler ctrlreconcile.Reconciler
	events     *events.FakeRecorder
	writes     []string
	fail       func(obj client.Object) error // called before each write
}

// newHarness returns a harness at half past one, after the first reconcile.
func newHarness(t *testing.T, b *Backup, objects ...client.Object) *harness {
	t.Helper()
	b.UID, b.Generation = "6d1f", 1
	h := &harness{clock: clocktesting.NewFakePassiveClock(two.Add(-30 * time.Minute)), events: events.NewFakeRecorder(100), fail: func(client.Object) error { return nil }}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, b)...).WithStatusSubresource(b, &batchv1.Job{}).Build()
	h.restart()
	h.pass(t)
	return h
}

// restart starts the operator as a new process, which remembers nothing.
func (h *harness) restart() {
	write := func(verb string, obj client.Object, send func() error) error {
		if err := h.fail(obj); err != nil {
			return err
		}
		h.writes = append(h.writes, verb+" "+obj.GetName())
		return send()
	}
	c := interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write("patch", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write("patch status of", obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	h.reconciler = reconcile.New(c, reconcile.Named("backup", newStep().WithClock(h.clock)).Reporting("Backups")).WithClock(h.clock).WithRecorder(h.events)
}

// pass reconciles once. It returns the Backup after that, and the delay until the next reconcile.
func (h *harness) pass(t *testing.T) (*Backup, time.Duration) {
	t.Helper()
	h.writes = nil
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "web"}}
	result, err := h.reconciler.Reconcile(t.Context(), request)
	require.NoError(t, err)
	b := &Backup{}
	require.NoError(t, h.Get(t.Context(), request.NamespacedName, b))
	return b, result.RequeueAfter
}

// at sets the clock and reconciles once.
func (h *harness) at(t *testing.T, now time.Time) (*Backup, time.Duration) {
	t.Helper()
	h.clock.SetTime(now)
	return h.pass(t)
}

// set edits the Backup.
func (h *harness) set(t *testing.T, edit func(*Backup)) {
	t.Helper()
	b := &Backup{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, b))
	edit(b)
	status := b.Status
	require.NoError(t, h.Update(t.Context(), b))
	b.Status = status
	require.NoError(t, h.Status().Update(t.Context(), b))
}

// jobs returns the names of the Jobs.
func (h *harness) jobs(t *testing.T) (names []string) {
	t.Helper()
	var all batchv1.JobList
	require.NoError(t, h.List(t.Context(), &all))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}

func (h *harness) job(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, job))
	return job
}

// finish sets the condition of a finished Job.
func (h *harness) finish(t *testing.T, name string, condition batchv1.JobConditionType) {
	t.Helper()
	job := h.job(t, name)
	job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue}}
	if condition == batchv1.JobComplete {
		job.Status.CompletionTime = new(metav1.NewTime(h.clock.Now()))
	}
	require.NoError(t, h.Status().Update(t.Context(), job))
}

// emitted returns the reasons of the events since the last call.
func (h *harness) emitted() (all []string) {
	for {
		select {
		case e := <-h.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func ready(b *Backup) metav1.Condition {
	c, _ := conditions.Get(b.Status.Conditions, conditions.Ready)
	return c
}

func TestReconcile(t *testing.T) {
	t.Run("Run", func(t *testing.T) {
		h := newHarness(t, newBackup())
		b, after := h.at(t, two.Add(-time.Minute))
		require.Equal(t, time.Minute, after, "exactly when the run is due")
		require.Equal(t, "Succeeded", ready(b).Reason)
		require.Empty(t, ready(b).Message, "a schedule is nothing to report for the whole object")
		own, _ := conditions.Get(b.Status.Conditions, "Backups")
		require.Equal(t, []string{"Succeeded", `"0 * * * *" in UTC`}, []string{own.Reason, own.Message})
		require.Empty(t, h.writes)
		h.emitted()

		b, after = h.at(t, two)
		require.Equal(t, []string{"create " + jobAtTwo, "patch status of web", "patch " + jobAtTwo}, h.writes)
		require.Equal(t, 10*time.Minute, after, "the longest delay")
		require.Equal(t, []string{"Normal Started Started Job " + jobAtTwo + ", which was due at 2026-03-01T02:00:00Z"}, h.emitted())
		require.True(t, b.Status.LastScheduleTime.Time.Equal(two))
		require.Equal(t, jobAtTwo, b.Status.LastJobName)
		job := h.job(t, jobAtTwo)
		require.False(t, *job.Spec.Suspend)
		require.Equal(t, map[string]string{record.Scheduled: "2026-03-01T02:00:00Z"}, job.Annotations)
		require.True(t, metav1.IsControlledBy(job, b))
		require.Equal(t, "backup", job.Labels["app.kubernetes.io/name"], "the labels are the author's")

		_, _ = h.pass(t)
		require.Empty(t, h.writes, "steady state")
		h.set(t, func(b *Backup) { b.Spec.Image = "backup:2" })
		_, _ = h.pass(t)
		require.Empty(t, h.writes, "a Job that exists is never changed")
		h.restart()
		_, _ = h.pass(t)
		require.Empty(t, h.writes, "a restart of the operator")

		h.clock.SetTime(two.Add(5 * time.Minute))
		h.finish(t, jobAtTwo, batchv1.JobComplete)
		b, _ = h.pass(t)
		require.Equal(t, []string{"patch status of web"}, h.writes)
		require.True(t, b.Status.LastSuccessfulTime.Time.Equal(two.Add(5*time.Minute)))
	})
	t.Run("TimeZone", func(t *testing.T) {
		h := newHarness(t, newBackup(func(s *BackupSpec) { s.Schedule, s.TimeZone = "30 23 * * *", "America/New_York" }))
		_, _ = h.at(t, two.Add(150*time.Minute)) // half past four in UTC
		require.Equal(t, []string{"web-29538990"}, h.jobs(t))
		require.Equal(t, []string{"2026-02-28"}, h.job(t, "web-29538990").Spec.Template.Spec.Containers[0].Args, "the day in the schedule's zone")
	})
	t.Run("NoHistory", func(t *testing.T) {
		h := newHarness(t, newBackup(func(s *BackupSpec) {
			s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = new(int32(0)), new(int32(0))
		}))
		for _, condition := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
			_, _ = h.at(t, h.clock.Now().Add(time.Hour))
			require.Len(t, h.jobs(t), 1)
			h.finish(t, h.jobs(t)[0], condition)
			_, _ = h.pass(t)
			require.Empty(t, h.jobs(t))
			h.restart()
			_, _ = h.pass(t)
			require.Empty(t, h.writes, "the run is not repeated")
		}
	})
	t.Run("TooLate", func(t *testing.T) {
		h := newHarness(t, newBackup(func(s *BackupSpec) { s.StartingDeadlineSeconds = new(int64(60)) }))
		h.emitted()
		b, _ := h.at(t, two.Add(2*time.Minute))
		require.Empty(t, h.jobs(t))
		require.Equal(t, []string{"Warning TooLate The run that was due at 2026-03-01T02:00:00Z is not started: its starting deadline has passed"}, h.emitted())
		require.EqualValues(t, 1, b.Status.MissedRuns)
		_, _ = h.pass(t)
		require.Empty(t, h.writes)
	})
	t.Run("Suspend", func(t *testing.T) {
		h := newHarness(t, newBackup(func(s *BackupSpec) { s.Suspend = true }))
		b, after := h.at(t, two)
		require.Zero(t, after)
		require.Equal(t, []string{"Suspended", "suspend is true"}, []string{ready(b).Reason, ready(b).Message})
		require.Equal(t, metav1.ConditionTrue, ready(b).Status)
		h.set(t, func(b *Backup) { b.Spec.Suspend = false })
		_, _ = h.pass(t)
		require.Empty(t, h.jobs(t), "what was missed meanwhile is not run")
		_, _ = h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtThree}, h.jobs(t))
	})
	t.Run("NoSchedule", func(t *testing.T) {
		h := newHarness(t, newBackup(func(s *BackupSpec) { s.Suspend, s.Schedule = true, "" }))
		b, after := h.at(t, two)
		require.Zero(t, after)
		require.Equal(t, []string{"Succeeded", ""}, []string{ready(b).Reason, ready(b).Message}, "Ready shows nothing of it")
	})
	t.Run("SuspendedTemplate", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newBackup()).WithStatusSubresource(newBackup()).Build()
		clock := clocktesting.NewFakePassiveClock(two.Add(-time.Minute))
		b := newBackup()
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(b), b))
		b.UID = "6d1f"
		require.NoError(t, c.Update(t.Context(), b))
		r := reconcile.New(c, reconcile.Named("backup", scheduledjobs.New(schedule, func(b *Backup, at time.Time) (*batchv1.Job, error) {
			job, err := backup(b, at)
			job.Spec.Suspend = new(true) // a job queue starts the Job later
			return job, err
		}).WithClock(clock))).WithClock(clock)
		for range 2 {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			require.NoError(t, err)
			clock.SetTime(two)
		}
		job := &batchv1.Job{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: jobAtTwo}, job))
		require.True(t, *job.Spec.Suspend)
		require.NotContains(t, job.Annotations, record.Held)
	})
	t.Run("LostStatus", func(t *testing.T) {
		h := newHarness(t, newBackup())
		_, _ = h.at(t, two)
		h.set(t, func(b *Backup) { b.Status = BackupStatus{} })
		h.restart()
		b, _ := h.pass(t)
		require.Equal(t, []string{jobAtTwo}, h.jobs(t))
		require.Equal(t, jobAtTwo, b.Status.LastJobName)
		require.True(t, b.Status.LastScheduleTime.Time.Equal(two))
		h.finish(t, jobAtTwo, batchv1.JobComplete)
		_, _ = h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtTwo, jobAtThree}, h.jobs(t))
	})
}

func TestConcurrencyPolicy(t *testing.T) {
	with := func(policy batchv1.ConcurrencyPolicy) *Backup {
		return newBackup(func(s *BackupSpec) { s.ConcurrencyPolicy = policy })
	}
	t.Run("Allow", func(t *testing.T) {
		h := newHarness(t, with(batchv1.AllowConcurrent))
		_, _ = h.at(t, two)
		_, _ = h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtTwo, jobAtThree}, h.jobs(t))
	})
	for name, policy := range map[string]batchv1.ConcurrencyPolicy{"Forbid": batchv1.ForbidConcurrent, "Default": ""} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, with(policy))
			_, _ = h.at(t, two)
			b, after := h.at(t, two.Add(time.Hour))
			require.Equal(t, []string{jobAtTwo}, h.jobs(t))
			require.Equal(t, []string{"WaitingForJob", "a run is due and waits for the end of Job " + jobAtTwo}, []string{ready(b).Reason, ready(b).Message})
			require.Equal(t, metav1.ConditionTrue, ready(b).Status, "nothing is wrong")
			require.Equal(t, 10*time.Minute, after)
			h.finish(t, jobAtTwo, batchv1.JobFailed)
			b, _ = h.pass(t)
			require.Equal(t, []string{jobAtTwo, jobAtThree}, h.jobs(t))
			require.Equal(t, "Succeeded", ready(b).Reason)
		})
	}
	t.Run("Replace", func(t *testing.T) {
		h := newHarness(t, with(batchv1.ReplaceConcurrent))
		_, _ = h.at(t, two)
		h.emitted()
		_, _ = h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtThree}, h.jobs(t))
		require.Equal(t, []string{"create " + jobAtThree, "patch status of web", "delete " + jobAtTwo, "patch " + jobAtThree}, h.writes,
			"the other Job is deleted only for a run that is recorded")
		require.Equal(t, "Normal Replaced Deleted Job "+jobAtTwo+", which had not finished", h.emitted()[0])
	})
}

// TestInterrupted lets each write of a run fail in turn. The next process, or the next reconcile, finishes the run.
func TestInterrupted(t *testing.T) {
	for failing := range 3 {
		for _, restart := range []bool{false, true} {
			h := newHarness(t, newBackup())
			writes := 0
			h.fail = func(client.Object) error {
				if writes++; writes == failing+1 {
					return errors.New("boom")
				}
				return nil
			}
			_, _ = h.at(t, two)
			if restart {
				h.restart()
			}
			b, _ := h.pass(t)
			require.Equal(t, []string{jobAtTwo}, h.jobs(t))
			require.False(t, *h.job(t, jobAtTwo).Spec.Suspend, "write %d", failing)
			require.True(t, b.Status.LastScheduleTime.Time.Equal(two))
			require.Zero(t, b.Status.MissedRuns)
			_, _ = h.pass(t)
			require.Empty(t, h.writes)
		}
	}
}

func TestHeldJob(t *testing.T) {
	crashed := func(t *testing.T) *harness {
		t.Helper()
		h := newHarness(t, newBackup())
		h.fail = func(obj client.Object) error {
			if _, isJob := obj.(*batchv1.Job); isJob && len(h.writes) == 2 {
				return errors.New("the operator is gone")
			}
			return nil
		}
		_, _ = h.at(t, two)
		h.fail = func(client.Object) error { return nil }
		require.True(t, *h.job(t, jobAtTwo).Spec.Suspend)
		h.restart()
		return h
	}
	t.Run("LaterRunIsDue", func(t *testing.T) {
		h := crashed(t)
		b, _ := h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtThree}, h.jobs(t), "the held Job never starts")
		require.EqualValues(t, 1, b.Status.MissedRuns)
	})
	t.Run("Suspended", func(t *testing.T) {
		h := crashed(t)
		h.set(t, func(b *Backup) { b.Spec.Suspend = true })
		_, _ = h.pass(t)
		require.Empty(t, h.jobs(t))
	})
	t.Run("Deleted", func(t *testing.T) {
		h := crashed(t)
		require.NoError(t, h.Delete(t.Context(), h.job(t, jobAtTwo)))
		_, _ = h.pass(t)
		require.Empty(t, h.jobs(t), "whoever deleted it may have done so after it had run: it does not run again")
	})
	t.Run("BeingDeleted", func(t *testing.T) {
		h := crashed(t)
		job := h.job(t, jobAtTwo)
		job.Finalizers = []string{"example.com/other"}
		require.NoError(t, h.Update(t.Context(), job))
		require.NoError(t, h.Delete(t.Context(), job))
		b, _ := h.pass(t)
		require.Equal(t, "WaitingForJob", ready(b).Reason)
		job = h.job(t, jobAtTwo)
		job.Finalizers = nil
		require.NoError(t, h.Update(t.Context(), job))
		_, _ = h.pass(t)
		require.Equal(t, []string{jobAtTwo}, h.jobs(t), "it has certainly not run")
		require.False(t, *h.job(t, jobAtTwo).Spec.Suspend)
	})
}

func TestForeignJobs(t *testing.T) {
	foreign := func(name string, edit func(*batchv1.Job)) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		edit(job)
		return job
	}
	t.Run("LeftAlone", func(t *testing.T) {
		byHand := foreign("web-again", func(job *batchv1.Job) {
			job.Annotations = map[string]string{record.Scheduled: "2026-03-01T01:00:00Z"}
			job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "test.opblocks.dev/v1", Kind: "Backup", Name: "web", UID: "6d1f", Controller: new(true)}}
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		})
		h := newHarness(t, newBackup(func(s *BackupSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) }), byHand)
		_, _ = h.at(t, two)
		require.Equal(t, []string{jobAtTwo, "web-again"}, slices.Sorted(slices.Values(h.jobs(t))), "it is no run, and no history")
	})
	t.Run("InTheWay", func(t *testing.T) {
		h := newHarness(t, newBackup(), foreign(jobAtTwo, func(*batchv1.Job) {}))
		b, after := h.at(t, two)
		require.Equal(t, "OwnedByAnother", ready(b).Reason)
		require.Less(t, after, time.Minute)
		require.Empty(t, h.writes[1:], "only the status")
		_, _ = h.at(t, two.Add(time.Hour))
		require.Equal(t, []string{jobAtTwo, jobAtThree}, h.jobs(t))
	})
}

func TestInvalid(t *testing.T) {
	tests := map[string]struct {
		edit            func(*BackupSpec)
		reason, message string
	}{
		"Schedule": {func(s *BackupSpec) { s.Schedule = "0 0 30 2 *" }, "InvalidSchedule", ""},
		"Policy":   {func(s *BackupSpec) { s.ConcurrencyPolicy = "Skip" }, "InvalidConcurrencyPolicy", `invalid concurrencyPolicy "Skip": write Allow, Forbid or Replace`},
		"Limit": {
			func(s *BackupSpec) { s.FailedJobsHistoryLimit = new(int32(-1)) }, "InvalidHistoryLimit",
			"invalid successfulJobsHistoryLimit 3 or failedJobsHistoryLimit -1: it is negative; write 0 or more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, newBackup(tc.edit))
			b, _ := h.at(t, two)
			require.Equal(t, tc.reason, ready(b).Reason)
			if tc.message != "" {
				require.Equal(t, tc.message, ready(b).Message)
			}
			require.True(t, conditions.IsTrue(b.Status.Conditions, conditions.Stalled))
			require.Empty(t, h.jobs(t))
		})
	}
	t.Run("Job", func(t *testing.T) {
		h := newHarness(t, newBackup())
		h.fail = func(obj client.Object) error {
			if _, isJob := obj.(*batchv1.Job); isJob {
				return apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), obj.GetName(), nil)
			}
			return nil
		}
		b, after := h.at(t, two.Add(58*time.Minute))
		require.Equal(t, `create Job `+jobAtTwo+`: Job.batch "`+jobAtTwo+`" is invalid`, ready(b).Message)
		require.Equal(t, 2*time.Minute, after, "the next run is not late because of this one")
	})
}

// TestMinInterval restarts the operator with WithMinInterval, so that schedules with a shorter interval are not
// allowed any more.
func TestMinInterval(t *testing.T) {
	tests := map[string]struct {
		reason, schedule string
		refused          bool
	}{
		"Second": {"there would be a Job every second", "@every 1s", true},
		"Equal":  {"it is the shortest interval that is allowed", "@every 1m", false},
		"Fields": {"five fields have a minute at least", "* * * * *", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, newBackup(func(s *BackupSpec) { s.Schedule = tc.schedule }))
			step := newStep().WithClock(h.clock).WithMinInterval(time.Minute)
			h.reconciler = reconcile.New(h.Client, reconcile.Named("backup", step)).WithClock(h.clock)
			b, _ := h.at(t, two)
			require.Equal(t, tc.refused, ready(b).Reason == "InvalidSchedule", "%s: %s", tc.reason, ready(b).Message)
			require.Equal(t, tc.refused, len(h.jobs(t)) == 0, tc.reason)
			require.Equal(t, tc.refused, b.Status.NextScheduleTime == nil, tc.reason)
		})
	}
}

// TestTwoSchedules sets up two steps that would create Jobs with the same names.
func TestTwoSchedules(t *testing.T) {
	for want, second := range map[string]*scheduledjobs.Jobs[*Backup]{
		`watches of step "two": two steps would create Jobs of the same names for a Backup: give one of them WithNameSuffix`: newStep(),
		"": newStep().WithNameSuffix("full"),
	} {
		s := scenario()
		var got error
		s.Start = func(p *reconciletest.Process) error {
			got = reconcile.For(p.Manager(), reconcile.Named("one", newStep()), reconcile.Named("two", second)).Complete()
			if got == nil {
				return nil
			}
			return reconcile.For(p.Manager(), reconcile.Named("other", newStep().WithNameSuffix("other"))).Complete()
		}
		reconciletest.Run(t, s, func(t *testing.T, _ *reconciletest.Env) {
			text := ""
			if got != nil {
				text = got.Error()
			}
			require.Equal(t, want, text)
		})
	}
}

func TestDeepCopy(t *testing.T) {
	full := Backup{
		Spec: BackupSpec{Spec: scheduledjobs.Spec{
			Schedule: "@daily", Suspend: true, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(1)), FailedJobsHistoryLimit: new(int32(2)),
		}},
		Status: BackupStatus{Status: scheduledjobs.Status{LastJobName: "web", LastJobUID: "1", LastSuccessfulTime: new(metav1.NewTime(two))}},
	}
	full.Spec.StartingDeadlineSeconds, full.Status.LastScheduleTime = new(int64(3)), new(metav1.NewTime(two))
	copied := full.DeepCopyObject().(*Backup)
	if diff := cmp.Diff(&full, copied); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	*copied.Spec.SuccessfulJobsHistoryLimit, *copied.Spec.FailedJobsHistoryLimit, *copied.Spec.StartingDeadlineSeconds = 9, 9, 9
	copied.Status.LastSuccessfulTime.Time, copied.Status.LastScheduleTime.Time = time.Time{}, time.Time{}
	require.EqualValues(t, []any{int32(1), int32(2), int64(3)},
		[]any{*full.Spec.SuccessfulJobsHistoryLimit, *full.Spec.FailedJobsHistoryLimit, *full.Spec.StartingDeadlineSeconds})
	require.True(t, full.Status.LastSuccessfulTime.Time.Equal(two) && full.Status.LastScheduleTime.Time.Equal(two))
	require.Equal(t, &full.Spec.Spec, full.Spec.Spec.DeepCopy())
	require.Equal(t, &full.Status.Status, full.Status.Status.DeepCopy())
	require.Nil(t, (*scheduledjobs.Spec)(nil).DeepCopy())
	require.Nil(t, (*scheduledjobs.Status)(nil).DeepCopy())
}
