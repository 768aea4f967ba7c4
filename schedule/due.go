package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Input is what [Due] needs: the schedule and its options, and what the status has recorded.
type Input struct {
	// Schedule is required: a *[Schedule], or any other fixed set of times, such as robfig's *cron.SpecSchedule and most calendars. Next
	// returns the first time strictly after t, or the zero time if there is none. The set of times must not depend on t.
	Schedule interface {
		Next(t time.Time) time.Time
	}

	// Since is the time from which the schedule is in effect. Set it to the current time when the object is first seen,
	// when schedule, time zone or blackout windows change, and when a suspension ends. Scheduled times up to Since are
	// never due, so a change never starts a run at once for a time in the past. (After a suspension, CronJob starts the
	// missed run.) An interval (@every) counts from Since.
	Since *metav1.Time
	// LastScheduleTime is [Decision.ScheduledTime] of the last run, or of the last run that was too late. It is not the
	// time at which the operator started the run. Scheduled times up to it are never due again. At least one of Since and
	// LastScheduleTime is required. If both are set, the later one is used. An interval counts from LastScheduleTime only
	// if Since is unset.
	LastScheduleTime *metav1.Time

	// StartingDeadlineSeconds is how many seconds after its due time (the scheduled time plus Offset) a missed run may still
	// start, as in CronJob. Nil means no limit. With less than about ten seconds, runs are lost when the operator is merely
	// busy.
	StartingDeadlineSeconds *int64
	// Suspend prevents any start while it is true, as spec.suspend of CronJob does.
	Suspend bool
	// BlackoutWindows are times in which no run starts. A blackout window delays runs in the same way as a downtime of the
	// operator: after the window, the latest missed run starts if the deadline allows it. So without a deadline a run is
	// delayed until after the window. With a short deadline it is skipped as soon as it is due.
	//
	// A delayed run starts at the end of the window plus Offset, so that many objects do not start together. This also holds
	// for a run that was due before the window and did not start, because the operator was down or other runs came first. If
	// another window begins before the run starts, that window delays the run too. Later windows delay a run by no more than
	// a day in all, and not beyond the deadline. If this limit is reached, the run starts before the other window begins.
	// Its delay is then the offset modulo the time between the two windows.
	BlackoutWindows BlackoutWindows
	// Offset is the time from the scheduled time of a run to its due time; see the function [Offset]. The deadline counts
	// from the due time, so a run is not too late because of a long offset. An offset longer than the interval of the
	// schedule loses no run: the whole schedule is shifted by the offset.
	Offset time.Duration
}

// Verdict is the kind of a [Decision].
type Verdict string

const (
	// Waiting means that no scheduled time has become due since the last run.
	Waiting Verdict = "Waiting"
	// Start means that a run has to start now. Record [Decision.ScheduledTime] as LastScheduleTime, either before the run
	// starts or in a way that a crash in between cannot repeat the run.
	Start Verdict = "Start"
	// Deferred means that a run is due, and that a blackout window, or the offset after it, delays the run. The run starts
	// at RequeueAt, unless a later run starts then. Its deadline has not passed by then.
	Deferred Verdict = "Deferred"
	// TooLate means that no run starts, because the starting deadline of the latest due run has passed, or passes before a
	// blackout window lets the run start. Record [Decision.ScheduledTime] as LastScheduleTime also in this case. Until
	// then the verdict stays TooLate.
	TooLate Verdict = "TooLate"
	// Suspended means that no run starts because [Input.Suspend] is set. [Status.Decide] never returns it.
	Suspended Verdict = "Suspended"
	// ClockBehind means that Since or LastScheduleTime is in the future. Either the clock is behind now, or it was ahead when
	// that time was recorded. No run is due until the clock has caught up, which may take years, so show
	// [Status.ClockBehindReason] in a condition.
	ClockBehind Verdict = "ClockBehind"
)

// Decision is the result of [Due].
type Decision struct {
	// Verdict is what to do now.
	Verdict Verdict
	// ScheduledTime is the scheduled time of the run that is due: the latest one after the last run, because only one run
	// starts however many were missed. It does not include the offset. Use it to identify the run. It is zero unless the
	// verdict is Start, Deferred or TooLate.
	ScheduledTime time.Time
	// Missed is the number of scheduled times that were due and do not run: all times before ScheduledTime, and
	// ScheduledTime itself if it is too late. It is exact for a *[Schedule], and at most 100 for other schedules.
	Missed int
	// Next is the scheduled time of the next run: the first time whose due time is still to come. It does not include the
	// offset. If the schedule is suspended, or no time follows, it is zero.
	Next time.Time
	// RequeueAt is when to call [Due] again: when the delayed run or a later run can start, whichever is first. A run can
	// start at its due time, or after a blackout window. No run starts before RequeueAt. RequeueAt does not depend on when Due
	// is called, so it stays the same for a delayed run over many calls and restarts of the operator. It is zero if no run can
	// start until the input changes.
	RequeueAt time.Time

	offset   time.Duration
	closed   bool      // TooLate because of a blackout window
	caughtUp time.Time // when a clock that is behind will have caught up
}

// TooLateReason returns why the run of a decision with the verdict [TooLate] does not start, as a text for an event or
// a condition.
func (d Decision) TooLateReason() string {
	if d.closed {
		return "its starting deadline passes before a blackout window lets it start"
	}
	return "its starting deadline has passed"
}

// maxRequeueAfter limits RequeueAfter.
const maxRequeueAfter = 10 * time.Minute

// RequeueAfter returns the time from now until RequeueAt, for ctrl.Result.RequeueAfter. If RequeueAt is zero, it returns
// zero. Otherwise it returns more than zero and at most ten minutes. The limit exists because a timer does not notice that
// the machine slept or that its clock was set, and because calling [Due] again costs almost nothing. With the verdict
// [ClockBehind], it returns the time until the clock has caught up, again at most ten minutes, so that a condition about
// the clock ends soon after that.
func (d Decision) RequeueAfter(now time.Time) time.Duration {
	at := d.RequeueAt
	if d.Verdict == ClockBehind {
		at = d.caughtUp
	}
	if at.IsZero() {
		return 0
	}
	return min(max(at.Sub(now), 1), maxRequeueAfter)
}

// Due decides whether a run has to start now, and when to call Due again. It is a pure function. For a *[Schedule] it takes
// one or two microseconds however long the operator was down, and about one more for each year in which it counts missed
// runs. It does not iterate over the missed runs, so their number is not limited. For other schedules, it calls Next up to
// about 200 times. (CronJob gives up at more than 100:
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#cron-job-limitations.)
//
//   - A run is due if its scheduled time is after both Since and LastScheduleTime, and not after now minus the offset.
//   - If several runs are due, only the latest one starts. It starts at its due time, or as soon as possible after that.
//   - No run starts after the deadline, in a blackout window, or while suspended. A window or a suspension does not
//     extend the deadline.
//   - A run that a blackout window has delayed starts at the end of the window plus the offset; see
//     [Input.BlackoutWindows]. If the deadline passes before that, the run is too late at once.
//   - If the clock was set back, repeated times cause no second run. If the clock was years ahead when a run was
//     recorded, no run is due for years, unless somebody removes LastScheduleTime and Since: see [ClockBehind].
//
// The first three rules are the rules of https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/, except
// for offset and blackout windows, which CronJob does not have.
//
// If the input is invalid, the error is an *[Error], and the decision is zero.
func Due(now time.Time, in Input) (Decision, error) {
	if err := in.validate(); err != nil {
		return Decision{}, err
	}
	if in.Suspend {
		return Decision{Verdict: Suspended}, nil
	}
	after, until := in.notDueUpTo(), now.Add(-in.Offset)
	d := Decision{Verdict: Waiting, offset: in.Offset}
	switch {
	case after.After(now):
		d.Verdict, d.caughtUp = ClockBehind, after
	case until.After(after):
		d.ScheduledTime, d.Missed = in.latest(after, until, now.Location())
	}
	if until.After(after) {
		after = until
	}
	d.Next = in.next(after, now.Location())
	d.RequeueAt = in.nextStart(d.Next, now.Location())
	if d.ScheduledTime.IsZero() {
		return d, nil
	}

	d.Missed-- // ScheduledTime itself is not missed
	start := in.startTime(d.ScheduledTime, now)
	switch {
	case in.isTooLate(d.ScheduledTime, later(start, now)):
		d.Verdict, d.closed = TooLate, !in.isTooLate(d.ScheduledTime, now)
		d.Missed++
	case start.After(now):
		d.Verdict, d.RequeueAt = Deferred, earlier(start, d.RequeueAt)
	default:
		d.Verdict = Start
	}
	return d, nil
}

func (in *Input) validate() error {
	s, isSchedule := in.Schedule.(*Schedule)
	switch {
	case in.Schedule == nil, isSchedule && s.isZero():
		return newError("schedule", nil, "it is not set; pass the result of Parse")
	case in.Since.IsZero() && in.LastScheduleTime.IsZero():
		return newError("since", nil, "neither Since nor LastScheduleTime is set; set Since to the time from which the schedule is in effect")
	case in.Offset < 0:
		return newError("offset", in.Offset, "it is negative; pass the result of Offset")
	}
	return checkDeadline(in.StartingDeadlineSeconds)
}

func checkDeadline(seconds *int64) error {
	if seconds != nil && *seconds < 0 {
		return newError("startingDeadlineSeconds", *seconds, "it is negative; write 0 or more, or leave it out for no limit")
	}
	return nil
}

// notDueUpTo returns the time up to which no run is due: Since or LastScheduleTime.
func (in *Input) notDueUpTo() time.Time {
	switch {
	case in.Since.IsZero():
		return in.LastScheduleTime.Time
	case in.LastScheduleTime.IsZero() || in.LastScheduleTime.Before(in.Since):
		return in.Since.Time
	}
	return in.LastScheduleTime.Time
}

// anchor returns the time from which an interval (@every) counts.
func (in *Input) anchor() int64 {
	if in.Since.IsZero() {
		return toSeconds(in.LastScheduleTime.Time)
	}
	return toSeconds(in.Since.Time)
}

// next returns the first scheduled time after a time. If there is none, it returns the zero time.
func (in *Input) next(after time.Time, location *time.Location) time.Time {
	s, ok := in.Schedule.(*Schedule)
	if !ok {
		return nextAfter(in.Schedule, after)
	}
	at, ok := s.next(toSeconds(after), in.anchor())
	return toTime(at, ok, location)
}

// latest returns the last scheduled time in (after, until], and the number of scheduled times in that range. If there
// is none, it returns the zero time.
func (in *Input) latest(after, until time.Time, location *time.Location) (time.Time, int) {
	s, ok := in.Schedule.(*Schedule)
	if !ok {
		return search(in.Schedule, after, until)
	}
	at, count := s.latest(toSeconds(after), toSeconds(until), in.anchor())
	return toTime(at, count > 0, location), count
}
