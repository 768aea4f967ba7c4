package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Status is what has to be remembered of a schedule, for a status to embed inline. It has all that [Due] and [MayStart] need
// after a restart; times are whole seconds.
type Status struct {
	// ScheduleSince is since when schedule, zone and windows have been as they are, and followed. Nothing before it is run.
	// +optional
	ScheduleSince *metav1.Time `json:"scheduleSince,omitempty"`

	// ScheduleHash tells which schedule, zone and windows that holds for.
	// +optional
	ScheduleHash string `json:"scheduleHash,omitempty"`

	// LastScheduleTime is the last time of the schedule that is done with: run, skipped, or too late.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is the next time of the schedule, or the end of the window that it is in. The spread comes on top.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// MissedRuns is how many times of the schedule had no run, because nobody could start one in time.
	// +optional
	MissedRuns int64 `json:"missedRuns,omitempty"`
}

// Decide is [Due] for an object as it stands in the API: the schedule and its rules in the spec, and this in the status. It
// keeps ScheduleSince and NextScheduleTime; what it says to start, or that it is too late, is to be recorded by [Status.Record].
// The error is an *[Error], and the schedule is stopped then.
func (s *Status) Decide(now time.Time, uid types.UID, schedule string, r Options) (Decision, error) {
	d, err := s.decide(now, uid, schedule, r)
	switch {
	case err != nil:
		s.Stop()
	case d.Verdict == Start, d.Verdict == TooLate:
		if s.NextScheduleTime == nil {
			s.NextScheduleTime = wholeSecond(d.ScheduledTime)
		}
	default:
		s.NextScheduleTime = d.next()
	}
	return d, err
}

func (s *Status) decide(now time.Time, uid types.UID, schedule string, r Options) (Decision, error) {
	parsed, err := Parse(schedule, r.TimeZone)
	if err != nil {
		return Decision{}, err
	}
	windows, err := ParseBlackoutWindows(r.TimeZone, r.BlackoutWindows...)
	if err != nil {
		return Decision{}, err
	}
	if hash := r.hash(schedule); s.ScheduleSince == nil || s.ScheduleHash != hash {
		s.ScheduleSince, s.ScheduleHash, s.NextScheduleTime = wholeSecond(now), hash, nil
	}
	return Due(now, Input{
		Schedule: parsed, Since: s.ScheduleSince, LastScheduleTime: s.LastScheduleTime,
		StartingDeadlineSeconds: r.StartingDeadlineSeconds, BlackoutWindows: windows, Offset: r.Offset(uid),
	})
}

// Record notes that a decision to start, or that it is too late, is carried out or will never be: its time is not due again.
func (s *Status) Record(d Decision) {
	s.LastScheduleTime, s.NextScheduleTime = wholeSecond(d.ScheduledTime), d.next()
	s.MissedRuns += int64(d.Missed)
}

// Stop is for a schedule that is suspended or invalid. When it is followed again, that is since then.
func (s *Status) Stop() { s.ScheduleSince, s.ScheduleHash, s.NextScheduleTime = nil, "", nil }

// Candidate is the object's claim to run, if it has one: it runs, as the caller knows, or its next time has come. Count none
// that cannot start, because it is paused, is being deleted or has failed: it would keep the others waiting.
func (s *Status) Candidate(now time.Time, object types.NamespacedName, running bool, offset time.Duration) (turn Candidate, ok bool) {
	turn = Candidate{Object: object, Running: running}
	if s.NextScheduleTime != nil {
		turn.Due = s.NextScheduleTime.Time
	}
	return turn, running || s.NextScheduleTime != nil && !now.Before(turn.Due.Add(offset))
}

// next is what to show people: Next, unless that is in a window.
func (d Decision) next() *metav1.Time {
	if d.RequeueAt.IsZero() {
		return nil
	}
	return wholeSecond(d.RequeueAt.Add(-d.offset))
}

func wholeSecond(t time.Time) *metav1.Time { return new(metav1.NewTime(t.Truncate(time.Second))) }

// DeepCopyInto is what controller-gen's code calls.
func (s *Status) DeepCopyInto(out *Status) {
	*out = *s
	out.ScheduleSince = s.ScheduleSince.DeepCopy()
	out.LastScheduleTime = s.LastScheduleTime.DeepCopy()
	out.NextScheduleTime = s.NextScheduleTime.DeepCopy()
}
