package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/opblocks/opblocks/schedule"
)

func date(month time.Month, day, hour, minute int) time.Time {
	return time.Date(2026, month, day, hour, minute, 0, 0, time.UTC)
}

// The reconciler in this example keeps no state in memory: everything is in the status.
func Example() {
	var status struct{ ScheduleSince, LastScheduleTime *metav1.Time }
	reconcile := func(now time.Time) (requeueAfter time.Duration) {
		if status.ScheduleSince.IsZero() {
			status.ScheduleSince = new(metav1.NewTime(now)) // do this also when schedule, time zone or blackout windows change
		}
		s, err := schedule.Parse("30 2 * * *", "Europe/Berlin")
		if err != nil {
			fmt.Println("condition:", err)
			return 0
		}
		d, err := schedule.Due(now, schedule.Input{Schedule: s, Since: status.ScheduleSince, LastScheduleTime: status.LastScheduleTime})
		if err != nil {
			fmt.Println("condition:", err)
			return 0
		}
		if d.Verdict == schedule.Start {
			fmt.Printf("run for %s, %d missed\n", d.ScheduledTime.Format(time.RFC3339), d.Missed)
			status.LastScheduleTime = new(metav1.NewTime(d.ScheduledTime))
		}
		return d.RequeueAfter(now)
	}
	fmt.Println(reconcile(date(time.March, 1, 1, 28)))
	fmt.Println(reconcile(date(time.March, 1, 1, 30)))
	fmt.Println(reconcile(date(time.March, 29, 9, 0))) // the operator was down for weeks
	// Output:
	// 2m0s
	// run for 2026-03-01T01:30:00Z, 0 missed
	// 10m0s
	// run for 2026-03-29T01:00:00Z, 27 missed
	// 10m0s
}

func ExampleParse() {
	s, err := schedule.Parse("0 4 * * MON-FRI", "America/New_York")
	fmt.Println(s, s.Location(), err)

	_, err = schedule.Parse("0 0 30 2 *", "UTC")
	fmt.Println(errors.As(err, new(*schedule.Error)))
	_, err = schedule.Parse("0 25 * * *", "UTC")
	fmt.Println(err)
	_, err = schedule.Parse("@daily", "Mars/Base")
	fmt.Println(err)
	// Output:
	// 0 4 * * MON-FRI America/New_York <nil>
	// true
	// invalid schedule "0 25 * * *": hour "25": "25" is out of range; write *, or 0 to 23, as list (a,b), range (a-b) or with a step (*/n)
	// invalid timeZone "Mars/Base": there is no such zone; write a name of the IANA database, such as "Europe/Berlin" or "UTC"
}

// On March 29th clocks in Berlin are set from 02:00 to 03:00.
func ExampleSchedule_Next() {
	s, err := schedule.Parse("30 2 * * *", "Europe/Berlin")
	if err != nil {
		panic(err)
	}
	at := date(time.March, 27, 12, 0).In(s.Location())
	for range 3 {
		at = s.Next(at)
		fmt.Println(at)
	}
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
}

func ExampleDue() {
	s, err := schedule.Parse("* * * * *", "")
	if err != nil {
		panic(err)
	}
	input := schedule.Input{Schedule: s, LastScheduleTime: new(metav1.NewTime(date(time.March, 1, 0, 0)))}

	d, err := schedule.Due(date(time.April, 1, 0, 0), input)
	fmt.Println(d.Verdict, d.ScheduledTime.Format(time.DateTime), d.Missed, err)

	input.LastScheduleTime = new(metav1.NewTime(d.ScheduledTime))
	d, err = schedule.Due(date(time.April, 1, 0, 0), input)
	fmt.Println(d.Verdict, d.RequeueAt.Format(time.DateTime), err)
	// Output:
	// Start 2026-04-01 00:00:00 44639 <nil>
	// Waiting 2026-04-01 00:01:00 <nil>
}

func ExampleInput_deadline() {
	s, err := schedule.Parse("@daily", "")
	if err != nil {
		panic(err)
	}
	input := schedule.Input{
		Schedule: s, LastScheduleTime: new(metav1.NewTime(date(time.March, 1, 0, 0))), StartingDeadlineSeconds: new(int64(3600)),
	}
	for _, hour := range []int{1, 2} {
		d, err := schedule.Due(date(time.March, 3, hour, 0), input)
		fmt.Println(d.Verdict, d.Missed, err)
	}
	// Output:
	// Start 1 <nil>
	// TooLate 2 <nil>
}

func ExampleDecision_RequeueAfter() {
	now := date(time.March, 1, 12, 0)
	fmt.Println(schedule.Decision{RequeueAt: now.Add(30 * time.Second)}.RequeueAfter(now))
	fmt.Println(schedule.Decision{RequeueAt: now.AddDate(0, 1, 0)}.RequeueAfter(now))
	fmt.Println(schedule.Decision{Verdict: schedule.Suspended}.RequeueAfter(now))
	// Output:
	// 30s
	// 10m0s
	// 0s
}

func ExampleParseBlackoutWindows() {
	s, err := schedule.Parse("0 12 * * *", "")
	if err != nil {
		panic(err)
	}
	office, err := schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "08:00", End: "18:00", Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}})
	if err != nil {
		panic(err)
	}
	monday := date(time.March, 2, 12, 0)
	d, err := schedule.Due(monday, schedule.Input{Schedule: s, Since: new(metav1.NewTime(date(time.March, 2, 0, 0))), BlackoutWindows: office})
	fmt.Println(d.Verdict, d.ScheduledTime.Format(time.TimeOnly), d.RequeueAt.Format(time.TimeOnly), err)

	_, err = schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "18:00", End: "08:00"}, schedule.BlackoutWindow{Start: "08:00", End: "18:00"})
	fmt.Println(err)
	// Output:
	// Deferred 12:00:00 18:00:00 <nil>
	// invalid blackoutWindows: they cover the whole week, so nothing would ever start; leave some time open
}

func ExampleBlackoutWindows_NextOpen() {
	night, err := schedule.ParseBlackoutWindows("Europe/Berlin", schedule.BlackoutWindow{Start: "22:00", End: "06:00"})
	if err != nil {
		panic(err)
	}
	fmt.Println(night.NextOpen(date(time.March, 1, 23, 0)))
	fmt.Println(night.NextOpen(date(time.March, 1, 12, 0)))
	// Output:
	// 2026-03-02 05:00:00 +0000 UTC
	// 2026-03-01 12:00:00 +0000 UTC
}

func ExampleOffset() {
	for _, uid := range []types.UID{"0b7e2f0e-6a3c-4d59-9d0c-5b1f6f1f8a11", "c2a5e1b4-93c7-4f0b-8e35-7d9a0c4b6e22"} {
		fmt.Println(schedule.Offset(uid, 10*time.Minute))
	}
	// Output:
	// 4m17s
	// 3m22s
}

// At most two objects run at the same time.
func ExampleCandidate_MayStart() {
	noon := date(time.March, 1, 12, 0)
	object := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	candidates := []schedule.Candidate{ // from the statuses of all objects of the kind
		{Object: object("web"), Running: true},
		{Object: object("cart"), Due: noon},
		{Object: object("mail"), Due: noon.Add(-time.Hour)},
	}
	for _, c := range candidates {
		fmt.Println(c.Object.Name, c.MayStart(2, slices.Values(candidates)))
	}
	// Output:
	// web true
	// cart false
	// mail true
}

// The spec of the object embeds Options, and its status embeds Status. Each iteration of the loop stands for a
// reconcile.
func ExampleStatus() {
	options := schedule.Options{TimeZone: "Europe/Berlin"}
	var status schedule.Status
	for _, now := range []time.Time{date(time.March, 1, 12, 0), date(time.March, 2, 3, 0), date(time.March, 2, 3, 1)} {
		d, err := status.Decide(now, "uid", "0 4 * * *", options)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Verdict, status.NextScheduleTime.UTC())
		if d.Verdict == schedule.Start { // start a run for d.ScheduledTime
			status.Record(d)
		}
	}
	// Output:
	// Waiting 2026-03-02 03:00:00 +0000 UTC
	// Start 2026-03-02 03:00:00 +0000 UTC
	// Waiting 2026-03-03 03:00:00 +0000 UTC
}

// The clock was a year ahead when a run was recorded. It is right now.
func ExampleStatus_ClockBehindReason() {
	status := schedule.Status{LastScheduleTime: new(metav1.NewTime(date(time.March, 1, 12, 0).AddDate(1, 0, 0)))}
	d, err := status.Decide(date(time.March, 1, 12, 30), "uid", "0 * * * *", schedule.Options{})
	fmt.Println(d.Verdict, err)
	fmt.Println(status.ClockBehindReason(d))
	// Output:
	// ClockBehind <nil>
	// the clock is behind lastScheduleTime, 2027-03-01T12:00:00Z: nothing starts until 2027-03-01T13:00:00Z. If the clock is right, it was ahead when that was recorded: remove lastScheduleTime and scheduleSince from the status
}

func ExampleNextToStart() {
	noon := date(time.March, 1, 12, 0)
	object := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	candidates := []schedule.Candidate{
		{Object: object("web"), Running: true},
		{Object: object("cart"), Due: noon},
		{Object: object("mail"), Due: noon.Add(-time.Hour)},
	}
	fmt.Println(schedule.NextToStart(2, slices.Values(candidates)))
	// Output: [shop/mail]
}

func ExampleError() {
	_, err := schedule.ParseBlackoutWindows("", schedule.BlackoutWindow{Start: "8:00", End: "18:00"})
	if invalid, ok := errors.AsType[*schedule.Error](err); ok {
		fmt.Println(invalid.Field, invalid.Reason())
	}
	fmt.Println(err)
	// Output:
	// blackoutWindows[0].start InvalidBlackoutWindows
	// invalid blackoutWindows[0].start "8:00": it is not a time of day; write HH:MM, from 00:00 to 23:59
}

func ExampleCheckInterval() {
	fmt.Println(schedule.CheckInterval("@every 1s", time.Minute))
	fmt.Println(schedule.CheckInterval("*/45 * * * *", 30*time.Minute)) // 00:45 and 01:00
	fmt.Println(schedule.CheckInterval("0 4 * * *", time.Hour))
	// Output:
	// invalid schedule "@every 1s": its shortest interval is 1s, and at least 1m0s is allowed; write a longer interval, such as @every 1m0s
	// invalid schedule "*/45 * * * *": its shortest interval is 15m0s, and at least 30m0s is allowed; write a longer interval, such as @every 30m0s
	// <nil>
}

// A webhook returns all errors. A reconcile returns only the first one.
func ExampleValidate() {
	options := schedule.Options{TimeZone: "Mars", BlackoutWindows: []schedule.BlackoutWindow{{Start: "08:00", End: "8 pm"}}}
	for _, err := range schedule.Validate("30 4 * * *", options, time.Hour, field.NewPath("spec")) {
		fmt.Println(err)
	}
	// Output:
	// spec.timeZone: Invalid value: "Mars": there is no such zone; write a name of the IANA database, such as "Europe/Berlin" or "UTC"
	// spec.blackoutWindows[0].end: Invalid value: "8 pm": it is not a time of day; write HH:MM, from 00:00 to 24:00
}

func ExampleWarnings() {
	options := schedule.Options{StartingDeadlineSeconds: new(int64(5))}
	for _, warning := range schedule.Warnings(options, field.NewPath("spec")) {
		fmt.Println(warning)
	}
	// Output:
	// spec.startingDeadlineSeconds: runs are lost while the operator is busy for 5 s; write 10 or more
}

// A step that has found an error can add the path of the wrong field in the object.
func ExampleError_At() {
	_, err := schedule.Parse("30 4 * *", "")
	if invalid, ok := errors.AsType[*schedule.Error](err); ok {
		fmt.Println(invalid.At(field.NewPath("spec", "backup")))
	}
	// Output:
	// spec.backup.schedule: Invalid value: "30 4 * *": it has 4 fields; write five: minute, hour, day of month, month, day of week
}
