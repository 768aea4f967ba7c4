//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it. With it, the exploration would take ten times as long.

package guides

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
	"github.com/opblocks/opblocks/schedule"
)

// SetupCleanup adds a controller to a manager whose only child is a CronJob.
func SetupCleanup(mgr ctrl.Manager) error {
	return reconcile.For(mgr, reconcile.Named("cleanup", ownedresources.Ensure(ownedresources.Build(cleanup)))).Complete()
}

func cleanup(s *Shop) *batchv1.CronJob {
	job := ownedresources.NewCronJob(s, "0 3 * * *", corev1.Container{Name: "cleanup", Image: s.Spec.Image, Args: []string{"cleanup"}})
	job.Spec.TimeZone = new("Etc/UTC")
	return job
}

// SetupBackups adds a controller to a manager that runs a Job at each due time of spec.backup.
func SetupBackups(mgr ctrl.Manager) error {
	return reconcile.For(mgr, reconcile.Named("backup", scheduledjobs.New(backupSchedule, backupJob))).Complete()
}

// backupSchedule returns the schedule of a Shop, and where its state is stored.
func backupSchedule(s *Shop) (scheduledjobs.Spec, *scheduledjobs.Status) {
	if s.Spec.Backup == nil {
		return scheduledjobs.Spec{Suspend: true}, &s.Status.Backup
	}
	return *s.Spec.Backup, &s.Status.Backup
}

// backupJob returns the Job of one due time.
func backupJob(s *Shop, scheduled time.Time) (*batchv1.Job, error) {
	return ownedresources.NewJob(s, corev1.Container{
		Name: "backup", Image: s.Spec.Image, Args: []string{"backup", scheduled.Format(time.DateOnly)},
	}), nil
}

// nightly is a schedule in a time zone.
var nightly = scheduledjobs.Spec{Schedule: "30 2 * * *", Options: schedule.Options{TimeZone: "Europe/Berlin"}}

// SetupReports adds a controller to a manager that sends a report at each due time of spec.report.
func SetupReports(mgr ctrl.Manager, send sender) error {
	return reconcile.For(mgr, reconcile.Named("report", reportStep{send, clock.RealClock{}})).Complete()
}

// sender sends the report of a time. It may be called again for the same time, and then sends nothing.
type sender func(ctx context.Context, shop string, scheduled time.Time) error

type reportStep struct {
	send  sender
	clock clock.PassiveClock
}

func (r reportStep) Reconcile(ctx context.Context, _ client.Client, s *Shop) error {
	due, err := s.Status.Report.Decide(r.clock.Now(), s.UID, s.Spec.Report, s.Spec.ReportOptions)
	if err != nil {
		return reconcile.Stalled("", err) // the error names the field, and what to write
	}
	switch due.Verdict {
	case schedule.Start:
		if err := reconcile.Checkpoint(ctx); err != nil { // this Shop is not one of long ago
			return err
		}
		if err := r.send(ctx, s.Name, due.ScheduledTime); err != nil {
			return err
		}
		s.Status.Report.Record(due)
	case schedule.TooLate:
		s.Status.Report.Record(due)
	case schedule.ClockBehind: // nothing starts, perhaps for years
		return reconcile.Wait("ClockBehind", due.RequeueAfter(r.clock.Now()), "%s", s.Status.Report.ClockBehindReason(due))
	}
	return reconcile.SuccessUntil("Scheduled", due.RequeueAfter(r.clock.Now()), "waits for its time")
}

func TestNightly(t *testing.T) {
	var status schedule.Status
	decision, err := status.Decide(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), "web", nightly.Schedule, nightly.Options)
	if want := time.Date(2026, 7, 1, 0, 30, 0, 0, time.UTC); err != nil || !decision.Next.Equal(want) {
		t.Errorf("the next run is at %v and not %v, error: %v", decision.Next, want, err)
	}
}

func TestBackupsSurviveEveryFault(t *testing.T) {
	hourly := shop(func(s *ShopSpec) { s.Backup = &scheduledjobs.Spec{Schedule: "0 * * * *"} })
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start:   func(p *reconciletest.Process) error { return SetupBackups(p.Manager()) },
		Horizon: 2 * time.Minute, // shorter than the period, longer than a retry
		Actions: []reconciletest.Action{
			reconciletest.Create(hourly),
			reconciletest.Wait(time.Hour),
			reconciletest.Wait(time.Minute), // work that a fault has interrupted is done
			reconciletest.Delete(hourly),
		},
	})
}

// mailbox is where reports arrive: each once, however often it is sent.
type mailbox struct{ Reports map[string]bool }

func (m *mailbox) State() any { return len(m.Reports) }

func TestReportsSurviveEveryFault(t *testing.T) {
	hourly := shop(func(s *ShopSpec) { s.Report = "0 * * * *" })
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		External: func() reconciletest.External { return &mailbox{Reports: map[string]bool{}} },
		Start: func(p *reconciletest.Process) error {
			box := p.External().(*mailbox)
			return SetupReports(p.Manager(), func(ctx context.Context, shop string, scheduled time.Time) error {
				return p.Effect(ctx, "send a report of "+shop, func() error {
					box.Reports[shop+scheduled.Format(time.RFC3339)] = true
					return nil
				})
			})
		},
		Horizon: 2 * time.Minute,
		Actions: []reconciletest.Action{
			reconciletest.Create(hourly),
			reconciletest.Wait(time.Hour),
			reconciletest.Wait(time.Minute),
			reconciletest.Delete(hourly),
		},
		Options: reconciletest.Options{SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.LeavesOutside}},
	}) // reports that were sent stay
}

func TestCleanupSurvivesEveryFault(t *testing.T) {
	explore(t, SetupCleanup,
		reconciletest.Create(shop()),
		change(func(s *ShopSpec) { s.Image = "shop:2" }),
		reconciletest.Delete(shop()))
}
