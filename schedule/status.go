package schedule

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Status holds what has to be remembered about a schedule. Embed it inline in a status. It is all that [Due] and
// [Candidate.MayStart] need after a restart of the operator. Times are whole seconds. The methods change the struct in memory and
// send no request.
//
// In each reconcile, call [Status.Decide]. If the verdict is [Start], start the run, and call [Status.Record]; if it is
// [TooLate], only call Record. If the verdict is [ClockBehind], show [Status.ClockBehindReason] in a condition. While the
// schedule is suspended, call [Status.Stop] instead of Decide.
type Status struct {
	// ScheduleSince is the time from which the schedule is in effect, with its present time zone and blackout windows. No
	// run starts for a scheduled time up to it.
	// +optional
	ScheduleSince *metav1.Time `json:"scheduleSince,omitempty"`

	// ScheduleHash is a hash of the schedule, time zone and blackout windows that scheduleSince is about.
	// +optional
	ScheduleHash string `json:"scheduleHash,omitempty"`

	// LastScheduleTime is the last scheduled time that needs no run any more: it was run, skipped, or too late.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is the next scheduled time, or the end of the blackout window that it is in. The run starts up to
	// spreadSeconds later.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// MissedRuns is the number of scheduled times that were not run, because a later one was due already or the starting
	// deadline had passed.
	// +optional
	MissedRuns int64 `json:"missedRuns,omitempty"`
}

// Decide calls [Due] with the schedule and the options of an object's spec, the offset of its UID, and this status. If
// the verdict is [Start] or [TooLate], call [Status.Record].
//
// Decide sets ScheduleSince and ScheduleHash when schedule, time zone or blackout windows are new or have changed, and
// keeps NextScheduleTime up to date. If the schedule or the options are invalid, it calls [Status.Stop] and returns an
// *[Error].
func (s *Status) Decide(now time.Time, uid types.UID, schedule string, options Options) (Decision, error) {
	d, err := s.decide(now, uid, schedule, options)
	switch {
	case err != nil:
		s.Stop()
	case d.Verdict == Start, d.Verdict == TooLate:
		if _, ok := s.Candidate(now, types.NamespacedName{}, false, d.offset); !ok {
			s.NextScheduleTime = wholeSecond(d.ScheduledTime)
		}
	default:
		s.NextScheduleTime = d.nextScheduleTime()
	}
	return d, err
}

func (s *Status) decide(now time.Time, uid types.UID, schedule string, options Options) (Decision, error) {
	parsed, err := Parse(schedule, options.TimeZone)
	if err != nil {
		return Decision{}, err
	}
	blackout, err := ParseBlackoutWindows(options.TimeZone, options.BlackoutWindows...)
	if err != nil {
		return Decision{}, err
	}
	if hash := options.hash(schedule); s.ScheduleSince == nil || s.ScheduleHash != hash {
		s.ScheduleSince, s.ScheduleHash, s.NextScheduleTime = wholeSecond(now), hash, nil
	}
	return Due(now, Input{
		Schedule: parsed, Since: s.ScheduleSince, LastScheduleTime: s.LastScheduleTime,
		StartingDeadlineSeconds: options.StartingDeadlineSeconds, BlackoutWindows: blackout, Offset: options.Offset(uid),
	})
}

// maxMissedRuns limits MissedRuns. Otherwise the sum would become negative if somebody had written the largest number into the
// status. All whole numbers up to 2^53 are exact in JSON patches.
const maxMissedRuns = 1 << 53

// Record records a decision whose verdict is [Start] or [TooLate], so that its scheduled time is not due again. Call it
// when the run was started, or when it is certain that the run will not start. It sets LastScheduleTime and
// NextScheduleTime, and adds the number of missed scheduled times to MissedRuns, up to 2^53.
func (s *Status) Record(d Decision) {
	s.LastScheduleTime, s.NextScheduleTime = wholeSecond(d.ScheduledTime), d.nextScheduleTime()
	s.MissedRuns = min(s.MissedRuns, maxMissedRuns-int64(d.Missed)) + int64(d.Missed)
}

// ClockBehindReason returns why no run starts after a decision with the verdict [ClockBehind], as a text for a condition. It
// names the recorded time that the clock has not reached, the time until which no run starts, and what to do if the clock is
// right. The text does not change while nothing else changes.
//
// The text advises to remove LastScheduleTime and ScheduleSince if the clock is right. The schedule then takes effect anew:
// scheduled times of the past are not due, so no run is repeated. If only LastScheduleTime is removed, the last run may be
// repeated.
func (s *Status) ClockBehindReason(d Decision) string {
	field, recorded := "lastScheduleTime", s.LastScheduleTime
	if recorded == nil || recorded.Before(s.ScheduleSince) {
		field, recorded = "scheduleSince", s.ScheduleSince
	}
	starts := "nothing starts"
	if !d.RequeueAt.IsZero() {
		starts += " until " + d.RequeueAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("the clock is behind %s, %s: %s. If the clock is right, it was ahead when that was recorded: "+
		"remove lastScheduleTime and scheduleSince from the status", field, recorded.UTC().Format(time.RFC3339), starts)
}

// Stop clears ScheduleSince, ScheduleHash and NextScheduleTime. Call it while the schedule is suspended. With the next
// call of [Status.Decide] the schedule takes effect anew, so runs that were missed during the suspension do not start.
func (s *Status) Stop() { s.ScheduleSince, s.ScheduleHash, s.NextScheduleTime = nil, "", nil }

// Candidate returns the candidate for [Candidate.MayStart] and [NextToStart], and whether the object is a candidate. An object is a
// candidate if it is running, which the caller knows, or if the time NextScheduleTime plus offset has come. Pass the result of
// [Options.Offset] as offset. Leave out objects that cannot start, because they are paused, are being deleted or have failed: they
// would keep other objects from starting.
func (s *Status) Candidate(now time.Time, object types.NamespacedName, running bool, offset time.Duration) (candidate Candidate, ok bool) {
	candidate = Candidate{Object: object, Running: running}
	if s.NextScheduleTime != nil {
		candidate.Due = s.NextScheduleTime.Time
	}
	return candidate, running || s.NextScheduleTime != nil && !now.Before(candidate.Due.Add(offset))
}

// nextScheduleTime returns the time for [Status.NextScheduleTime]: Next, or the end of the blackout window that delays the
// run. It is the next start minus the offset. If the offset is longer than the time until another window, it is earlier than
// the end of the window: see [Input.BlackoutWindows].
func (d Decision) nextScheduleTime() *metav1.Time {
	if d.RequeueAt.IsZero() {
		return nil
	}
	return wholeSecond(d.RequeueAt.Add(-d.offset))
}

func wholeSecond(t time.Time) *metav1.Time { return new(metav1.NewTime(t.Truncate(time.Second))) }

// DeepCopy returns a copy of the status, and nil for nil. The code that controller-gen generates for a pointer calls it.
func (s *Status) DeepCopy() *Status {
	if s == nil {
		return nil
	}
	out := new(Status)
	s.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies the status into out. The code that controller-gen generates calls it.
func (s *Status) DeepCopyInto(out *Status) {
	*out = *s
	out.ScheduleSince = s.ScheduleSince.DeepCopy()
	out.LastScheduleTime = s.LastScheduleTime.DeepCopy()
	out.NextScheduleTime = s.NextScheduleTime.DeepCopy()
}
