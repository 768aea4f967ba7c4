package scheduledjobs_test

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/scheduledjobs"
)

// SetupWithManager adds the whole controller of a Backup, whose spec and status embed scheduledjobs.Spec and
// scheduledjobs.Status.
func SetupWithManager(mgr ctrl.Manager) error {
	return reconcile.For(mgr, reconcile.Named("backup", scheduledjobs.New(schedule, backup).WithMinInterval(time.Minute))).Complete()
}

func schedule(b *Backup) (scheduledjobs.Spec, *scheduledjobs.Status) {
	return b.Spec.Spec, &b.Status.Status
}

func backup(b *Backup, scheduled time.Time) (*batchv1.Job, error) {
	return ownedresources.NewJob(b, corev1.Container{Name: "backup", Image: b.Spec.Image, Args: []string{scheduled.Format(time.DateOnly)}}), nil
}

func Example() {
	fmt.Printf("%T\n", SetupWithManager)
	// Output: func(manager.Manager) error
}

// A unit test runs the step with a fake client, and sets its clock.
func ExampleNew() {
	ctx := context.Background()
	b := &Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"},
		Spec:       BackupSpec{Image: "backup:1", Spec: scheduledjobs.Spec{Schedule: "0 2 * * *"}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 1, 55, 0, 0, time.UTC))
	r := reconcile.New(c, reconcile.Named("backup", scheduledjobs.New(schedule, backup).WithClock(clock))).WithClock(clock)

	for range 2 {
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		fmt.Println(clock.Now().Format(time.TimeOnly), "again after", result.RequeueAfter, err)
		clock.SetTime(clock.Now().Add(result.RequeueAfter))
	}
	var jobs batchv1.JobList
	fmt.Println(c.List(ctx, &jobs), len(jobs.Items), jobs.Items[0].Name, jobs.Items[0].Spec.Template.Spec.Containers[0].Args)
	// Output:
	// 01:55:00 again after 5m0s <nil>
	// 02:00:00 again after 10m0s <nil>
	// <nil> 1 web-29538840 [2026-03-01]
}

// An owner has two schedules, in different fields. Their Jobs need different names.
func ExampleJobs_WithNameSuffix() {
	ctx := context.Background()
	b := &Backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6d1f"},
		Spec:       BackupSpec{Image: "backup:1", Spec: scheduledjobs.Spec{Schedule: "0 2 * * *"}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 1, 55, 0, 0, time.UTC))
	full := scheduledjobs.New(schedule, backup).WithNameSuffix("full").WithClock(clock)
	r := reconcile.New(c, reconcile.Named("full", full)).WithClock(clock)

	for range 2 {
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			fmt.Println(err)
		}
		clock.SetTime(time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC))
	}
	var jobs batchv1.JobList
	fmt.Println(c.List(ctx, &jobs), jobs.Items[0].Name)
	// Output:
	// <nil> web-full-29538840
}
