package scheduledjobs

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// This file decides which run is due, whether it starts, and which Jobs are deleted. It sends no requests.

// observe updates the status from the Jobs: when a run last succeeded, and which run was started last. The status has the
// last started run already, unless somebody removed it.
func observe(status *Status, runs []run) {
	for i := range runs {
		r := &runs[i]
		if done := r.job.Status.CompletionTime; r.state == succeeded && done != nil &&
			(status.LastSuccessfulTime == nil || status.LastSuccessfulTime.Before(done)) {
			status.LastSuccessfulTime = done.DeepCopy()
		}
		if last := status.LastScheduleTime; r.state != held && (last == nil || last.Time.Before(r.scheduled)) {
			status.LastScheduleTime = new(metav1.NewTime(r.scheduled))
			status.LastJobName, status.LastJobUID = r.job.Name, r.job.UID
		}
	}
}

// decide returns which run is due. A run may be recorded while its Job is still suspended, because the process crashed
// before it started the Job. Then decide decides about this run again: it may be too late, or a later run may be due now.
func decide(now time.Time, owner types.UID, spec *Spec, status *Status, runs []run) (schedule.Decision, error) {
	recorded := status.LastScheduleTime
	for i := range runs {
		if r := &runs[i]; r.state == held && r.isRecorded(status) {
			status.LastScheduleTime = new(metav1.NewTime(r.scheduled.Add(-time.Second)))
		}
	}
	due, err := status.Decide(now, owner, spec.Schedule, spec.Options)
	status.LastScheduleTime = recorded
	return due, err
}

// runsAfter returns the names of the Jobs whose runs are in the future, the earliest first. [observe] copies their times to
// the status, so it would not help to remove the time only from the status. A Job that was never started is ignored.
func runsAfter(now time.Time, runs []run) (names []string) {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b run) int { return a.scheduled.Compare(b.scheduled) })
	for i := range sorted {
		if r := &sorted[i]; r.state != held && r.scheduled.After(now) {
			names = append(names, r.job.Name)
		}
	}
	return names
}

// alsoDelete returns the end of the message of [schedule.ClockBehind]: which Jobs to delete before their time is removed
// from the status.
func alsoDelete(jobs []string) string {
	switch len(jobs) {
	case 0:
		return ""
	case 1:
		return "; first delete Job " + jobs[0] + ", which shows such a time too"
	}
	return "; first delete the Jobs " + strings.Join(jobs, ", ") + ", which show such times too"
}

// startPlan says how the due run starts.
type startPlan struct {
	// waitsFor is a Job that has to end before the run can start, or nil.
	waitsFor *run
	// held is the suspended Job of the run, if it exists already. Otherwise it is nil, and the Job has to be created.
	held *run
	// replaced has the Jobs that are deleted so that the run can start.
	replaced []run
}

// planStart decides how the run of a scheduled time starts.
func planStart(scheduled time.Time, policy batchv1.ConcurrencyPolicy, runs []run) (p startPlan) {
	for i := range runs {
		r := &runs[i]
		switch {
		case r.state == held && r.scheduled.Equal(scheduled) && r.isDeleting():
			p.waitsFor = r // the Job has the name of the new one, so wait until it is gone
		case r.state == held && r.scheduled.Equal(scheduled):
			p.held = r
		case r.state != active:
		case policy == batchv1.ForbidConcurrent && p.waitsFor == nil:
			p.waitsFor = r
		case policy == batchv1.ReplaceConcurrent && !r.isDeleting():
			p.replaced = append(p.replaced, *r)
		}
	}
	return p
}

// abandoned returns the suspended Jobs that will not be started: all except the Job of the due run.
func abandoned(due schedule.Decision, runs []run) (jobs []run) {
	if due.Verdict == schedule.ClockBehind { // when the clock has caught up, the run of a suspended Job may be due
		return nil
	}
	for i := range runs {
		r := &runs[i]
		starts := (due.Verdict == schedule.Start || due.Verdict == schedule.Deferred) && r.scheduled.Equal(due.ScheduledTime)
		if r.state == held && !starts && !r.isDeleting() {
			jobs = append(jobs, *r)
		}
	}
	return jobs
}

// expired returns the finished Jobs beyond the history limits, the oldest first. If a limit is below 0, which is invalid, no
// Job is returned for it.
func expired(runs []run, successfulLimit, failedLimit int) (jobs []run) {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b run) int { return b.scheduled.Compare(a.scheduled) })
	limits := map[runState]int{succeeded: successfulLimit, failed: failedLimit}
	kept := map[runState]int{}
	for i := range sorted { // the newest first
		r := &sorted[i]
		if r.state != succeeded && r.state != failed || r.isDeleting() {
			continue
		}
		limit := limits[r.state]
		if kept[r.state]++; limit >= 0 && kept[r.state] > limit {
			jobs = append(jobs, *r)
		}
	}
	slices.Reverse(jobs)
	return jobs
}
