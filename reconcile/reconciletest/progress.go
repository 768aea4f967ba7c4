package reconciletest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation"
	"github.com/opblocks/opblocks/internal/simulation/run"
	"github.com/opblocks/opblocks/internal/simulation/text"
)

// When progress is printed.
const (
	firstProgress   = 10 * time.Second // without -v; with it, at once
	progressEvery   = 10 * time.Second
	verboseProgress = 5 * time.Second // with -v, instead of progressEvery
)

// newProgress returns the printer of an exploration's progress. It prints to the standard error: what a test logs without -v
// is held back until the test has ended.
func newProgress() *simulation.Progress {
	if testing.Verbose() {
		return &simulation.Progress{Output: os.Stderr, Every: verboseProgress}
	}
	return &simulation.Progress{Output: os.Stderr, First: firstProgress, Every: progressEvery}
}

// The time between the end of an exploration and the test's deadline: a tenth of what is left at the start, within these
// bounds. Runs that have begun then, and the report, have to end in it.
const (
	minMargin = time.Second
	maxMargin = 30 * time.Second
)

// deadlineOf returns the test's deadline, or the zero time if it has none. The Deadline of a new(testing.T), which an Example
// has, panics.
func deadlineOf(t *testing.T) (deadline time.Time) {
	defer func() { _ = recover() }()
	deadline, _ = t.Deadline()
	return deadline
}

// marginOf returns the time between the end of an exploration and the test's deadline.
func marginOf(start, deadline time.Time) time.Duration {
	return min(max(deadline.Sub(start)/10, minMargin), maxMargin)
}

// endRuns returns what ends the runs that have begun before the deadline: half of the margin before it. A run that does not
// end then is left behind after another quarter. The rest is for the report. A zero deadline is none.
func endRuns(start, deadline time.Time) (runs run.Deadline, release func()) {
	if deadline.IsZero() {
		return runs, func() {}
	}
	margin := marginOf(start, deadline)
	closedAt := func(at time.Time) (<-chan struct{}, *time.Timer) {
		reached := make(chan struct{})
		return reached, time.AfterFunc(time.Until(at), func() { close(reached) })
	}
	stop, stopper := closedAt(deadline.Add(-margin / 2))
	abandon, abandoner := closedAt(deadline.Add(-margin / 4))
	return run.Deadline{Stop: stop, Abandon: abandon}, func() { stopper.Stop(); abandoner.Stop() }
}

// endOf returns when no further run begins. If that is because of the test's deadline, it also returns the reason. A zero
// deadline is none.
func endOf(start time.Time, budget time.Duration, deadline time.Time) (end time.Time, reason error) {
	const unlimited = 100 * 365 * 24 * time.Hour // beyond it the sum overflows
	if budget < unlimited {
		end = start.Add(budget)
	}
	if deadline.IsZero() {
		return end, nil
	}
	margin := marginOf(start, deadline)
	last := deadline.Add(-margin)
	if !end.IsZero() && !last.Before(end) {
		return end, nil
	}
	return last, fmt.Errorf("it ends %s before the test's deadline: set a longer one with go test -timeout, or explore a sample with Limit or Budget", margin.Round(time.Second))
}

// leaveOut notes why runs were left out. reason is what endOf returned. unfinished names a run that the test's deadline
// has ended.
func (r *Report) leaveOut(s *settings, reason error, unfinished string) {
	switch {
	case unfinished != "" && r.Late == 0: // the time ended before the first run with a fault
		r.Unfinished = fmt.Errorf("not finished: the test's deadline came too early: set a longer one with go test -timeout, or divide the scenario: "+
			"there is one run without faults for each of its first actions\n%s", unfinished)
	case unfinished != "":
		r.Unfinished = fmt.Errorf("not finished: %s left out: the test's deadline came: set a longer one with go test -timeout, or explore a sample with Limit or Budget\n%s",
			text.Plural(r.Late, "run"), unfinished)
	case r.Late == 0:
	case reason == nil:
		r.budget = s.budget
	default:
		r.Unfinished = fmt.Errorf("not finished: %s left out: %w", text.Plural(r.Late, "run"), reason)
	}
}

// isSampled reports whether not all single faults were tried.
func (r *Report) isSampled() bool { return r.Seed > 0 && r.Singles > r.done }

// leftOut returns how many runs the budget left out, as the end of a sentence.
func (r *Report) leftOut() string {
	if r.budget == 0 {
		return ""
	}
	return fmt.Sprintf("; %s left out, since the budget of %s was used up", text.Plural(r.Late, "run"), r.budget)
}
