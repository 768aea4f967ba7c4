package schedule

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
