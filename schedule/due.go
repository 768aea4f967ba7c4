package schedule

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verdict is what to do now.
type Verdict string

const (
	// Waiting: nothing has become due since the last run.
	Waiting Verdict = "Waiting"
	// Start: a run has to start now. Record Latest as the last run, before it or so that a crash cannot repeat it.
	Start Verdict = "Start"
	// Deferred: a run is due, but now is in a window, or in the spread after one.
	Deferred Verdict = "Deferred"
	// TooLate: the latest time that was due is past its deadline, and none is run. Record Latest as the last run all the
	// same: until then, this is the verdict.
	TooLate Verdict = "TooLate"
	// Suspended: nothing starts, whatever is due.
	Suspended Verdict = "Suspended"
	// ClockBehind: what was recorded lies in the future, so the clock was set back. Nothing is due until it has caught up.
	ClockBehind Verdict = "ClockBehind"
)

// Decision is what [Due] says.
type Decision struct {
	Verdict Verdict
	// ScheduledTime is the time that is due: the latest of those after the last run, of which only one is ever run, however many were
	// missed. It is the schedule's time without the offset, and stands for the run wherever that has to be told from others.
	// Zero unless the verdict is Start, Deferred or TooLate.
	ScheduledTime time.Time
	// Missed is how many due times have had no run and will get none: those before Latest, and Latest itself if it is too late.
	// It is exact for a *[Schedule], and ends at 100 for other [Times].
	Missed int
	// Next is the next due time, without the offset, to show to people. Zero if suspended, or if nothing ever comes again.
	Next time.Time
	// RequeueAt is when to decide again: the start of the next run, or the end of a window. Zero if only a change can bring a run.
	RequeueAt time.Time

	offset time.Duration
}

// longest bounds After.
const longest = 10 * time.Minute

// RequeueAfter is the delay until Wake, to be returned as RequeueAfter: zero for none, else more than zero and at most ten minutes.
// A timer counts neither the time in which its machine sleeps nor by how much its clock is set, and deciding costs next to
// nothing.
func (d Decision) RequeueAfter(now time.Time) time.Duration {
	if d.RequeueAt.IsZero() {
		return 0
	}
	return min(max(d.RequeueAt.Sub(now), 1), longest)
}

// Due decides whether a run has to start now, and when to decide again. It is a pure function, and takes a microsecond or two
// however long the operator was down, and one more for each year whose runs are counted: none is walked through one by one,
// and no number of missed ones is too many. (CronJob's documentation gives 100 as the most:
// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#cron-job-limitations.)
//
//   - Due is a time of the schedule that is after both Since and LastRun, and not after now less the offset.
//   - Of several only the latest counts. Its run starts at the due time plus the offset, or as soon as it can after that.
//   - Nothing starts after the deadline, in a window, or while suspended; the deadline goes on meanwhile.
//   - If the clock was set back, what it shows again brings no second run. If it was years ahead when a run was recorded, nothing
//     is due for years: then correct LastRun and Since.
//
// The first three are those of https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/, but for the offset and
// windows, which CronJob has not. The error is [ErrInvalid], beside a zero decision.
func Due(now time.Time, p Input) (Decision, error) {
	if err := p.validate(); err != nil {
		return Decision{}, err
	}
	if p.Suspend {
		return Decision{Verdict: Suspended}, nil
	}
	after, until := p.after(), now.Add(-p.Offset)
	d := Decision{Verdict: Waiting, offset: p.Offset}
	switch {
	case after.After(now):
		d.Verdict = ClockBehind
	case until.After(after):
		d.ScheduledTime, d.Missed = p.latest(after, until, now.Location())
	}
	if until.After(after) {
		after = until
	}
	d.Next = p.next(after, now.Location())
	if !d.Next.IsZero() {
		d.RequeueAt = p.start(d.Next.Add(p.Offset))
	}
	if d.ScheduledTime.IsZero() {
		return d, nil
	}

	d.Missed-- // but for Latest itself
	start := p.start(d.ScheduledTime.Add(p.Offset))
	if !start.After(now) {
		start = p.start(now) // it is late: only where no window is now
	}
	switch {
	case p.isTooLate(d.ScheduledTime, now):
		d.Verdict = TooLate
		d.Missed++
	case start.After(now):
		d.Verdict, d.RequeueAt = Deferred, start
	default:
		d.Verdict = Start
	}
	return d, nil
}

// Input is what [Due] decides from, as it stands in the spec and the status of an object.
type Input struct {
	// Schedule is required: a *[Schedule], or any other [Times].
	Schedule Times

	// Since is when the schedule began to hold: set it to the clock's time when the object is first seen, and whenever schedule,
	// zone or windows change or a suspension ends. Nothing is due before it, so that a change takes effect at once and never
	// starts a surprise run. (CronJob starts what it missed while it was suspended.) An interval (@every) counts from it.
	Since *metav1.Time
	// LastScheduleTime is the time, as [Decision] named it, of the last run or of the last one that was too late; not the time at which
	// the operator came to it. Nothing up to it is due again. One of Since and LastRun is required, and the later one counts.
	// An interval counts from LastRun only if there is no Since.
	LastScheduleTime *metav1.Time

	// StartingDeadlineSeconds is how long after its start a run that was missed may still begin, as in CronJob: nil is for
	// ever. Below some ten seconds, runs are lost when the operator is merely busy.
	StartingDeadlineSeconds *int64
	// Suspend starts nothing.
	Suspend bool
	// BlackoutWindows in which nothing may start. To a run, a window is what an operator that is down is: when it ends, the latest that
	// was missed starts if the deadline allows. So without a deadline a run is put off to the end of a window, and with a short
	// one it is left out. What a window has put off starts at the offset after it, so that many do not start together there
	// either; or at its end, if the next window comes before that.
	BlackoutWindows BlackoutWindows
	// Offset comes between a due time and its start; see [Offset]. The deadline counts from the start, so that a late place costs
	// no run. An offset that is longer than the schedule's distances loses none either: all is as if on a clock that is behind.
	Offset time.Duration
}

func (p *Input) validate() error {
	s, ours := p.Schedule.(*Schedule)
	switch {
	case p.Schedule == nil, ours && s.isZero():
		return invalid("schedule", ": there is none; give what Parse returned")
	case p.Since.IsZero() && p.LastScheduleTime.IsZero():
		return invalid("since", ": neither it nor the last run is known; record when the schedule began to hold")
	case p.StartingDeadlineSeconds != nil && *p.StartingDeadlineSeconds < 0:
		return invalid("startingDeadlineSeconds", " %d: it is negative; write 0 or more, or leave it out for no limit",
			*p.StartingDeadlineSeconds)
	case p.Offset < 0:
		return invalid("offset", " %v: it is negative; take what Offset returns", p.Offset)
	}
	return nil
}

// after is the moment up to which nothing is due.
func (p *Input) after() time.Time {
	switch {
	case p.Since.IsZero():
		return p.LastScheduleTime.Time
	case p.LastScheduleTime.IsZero() || p.LastScheduleTime.Before(p.Since):
		return p.Since.Time
	}
	return p.LastScheduleTime.Time
}

func (p *Input) anchor() int64 {
	if p.Since.IsZero() {
		return seconds(p.LastScheduleTime.Time)
	}
	return seconds(p.Since.Time)
}

// start is the moment at which a run may start whose time it would be: the same, unless that is in a window.
func (p *Input) start(t time.Time) time.Time {
	open := p.BlackoutWindows.Open(t)
	if spread := open.Add(p.Offset); open.After(t) && p.BlackoutWindows.Open(spread).Equal(spread) {
		return spread
	}
	return open
}

// isTooLate says whether the deadline has passed for what is due at a time.
func (p *Input) isTooLate(due, now time.Time) bool {
	const most = math.MaxInt64 / int64(time.Second)
	if p.StartingDeadlineSeconds == nil || *p.StartingDeadlineSeconds > most {
		return false
	}
	return now.Sub(due.Add(p.Offset)) > time.Duration(*p.StartingDeadlineSeconds)*time.Second
}

// next is the first time after a moment, or the zero time.
func (p *Input) next(after time.Time, in *time.Location) time.Time {
	s, ok := p.Schedule.(*Schedule)
	if !ok {
		return following(p.Schedule, after)
	}
	at, ok := s.next(seconds(after), p.anchor())
	return moment(at, ok, in)
}

// latest is the last time after one moment and not after another, and how many there are; none is the zero time.
func (p *Input) latest(after, until time.Time, in *time.Location) (time.Time, int) {
	s, ok := p.Schedule.(*Schedule)
	if !ok {
		return search(p.Schedule, after, until)
	}
	at, count := s.latest(seconds(after), seconds(until), p.anchor())
	return moment(at, count > 0, in), count
}
