package schedule

import "time"

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
