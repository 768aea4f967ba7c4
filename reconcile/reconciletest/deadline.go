package reconciletest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// These are the bounds of the margin, which is the time between the end of an exploration and its deadline: a tenth of the time that is
// left at the start. Within the margin, the runs that have begun have to end, and the report has to be written.
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

// isAlone reports whether the flag -test.run selects nothing but the test of that name.
func isAlone(test string) bool {
	selected := flag.Lookup("test.run")
	return selected != nil && selected.Value.String() == only(test)
}

// only returns the pattern that selects nothing but the test of that name.
func only(test string) string { return "^" + strings.ReplaceAll(test, "/", "$/^") + "$" }

// shareOf returns the deadline of an exploration that begins now. It is halfway to the test's deadline, so that the tests after it
// have time too. Nobody can know how many tests there are. Explorations that begin at the same time have the same deadline. An
// exploration has all the time if it is the only test, or if it has a budget. A zero deadline means no deadline.
func shareOf(start, deadline time.Time, all bool) time.Time {
	if all || deadline.IsZero() {
		return deadline
	}
	return start.Add(deadline.Sub(start) / 2)
}

// marginOf returns the time between the end of an exploration and the test's deadline.
func marginOf(start, deadline time.Time) time.Duration {
	return min(max(deadline.Sub(start)/10, minMargin), maxMargin)
}

// endRuns returns channels that end the runs that have begun. A run is told to stop half of the margin before the deadline. If it does not
// stop, it is abandoned a quarter of the margin before the deadline. The rest is for the report. A zero deadline means no deadline.
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

// moreTime says how an exploration gets more time.
const moreTime = "set a longer one with go test -timeout, or explore a sample with Limit or Budget"

// endOf returns the time from which no further run begins. If the exploration's deadline sets that time, endOf also returns the
// reason. A zero deadline means no deadline.
func endOf(start time.Time, budget time.Duration, deadline time.Time) (end time.Time, reason error) {
	if budget > 0 {
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
	return last, fmt.Errorf("it ends %s before its deadline: %s", margin.Round(time.Second), moreTime)
}

// leaveOut notes why runs were left out. That is a failure only if not even the runs without faults were done, or if a run hangs: on a slow
// machine a sound operator must not fail. reason is what endOf returned. unfinished names a run that the deadline has ended, and hung
// says that a run hangs. half is true if the exploration had only half of the time until the test's deadline.
func (r *Report) leaveOut(budget time.Duration, reason error, unfinished string, hung, half bool) {
	switch {
	case hung && r.Late > 0:
		r.Unfinished = fmt.Errorf("not finished: %s left out, since a run hangs, and nothing but the end of the program can end it", text.Plural(r.Late, "run"))
		return
	case unfinished != "" && r.Singles == 0: // the time ended before the first run with a fault
		r.Unfinished = fmt.Errorf("not finished: its deadline came too early: set a longer one with go test -timeout, or divide the scenario: "+
			"there is one run without faults for each of its first actions\n%s", unfinished)
	case unfinished != "":
		r.late = fmt.Sprintf("%s left out: the deadline came: %s\n%s", text.Plural(r.Late, "run"), moreTime, unfinished)
	case r.Late == 0:
	case reason == nil:
		r.budget = budget
	default:
		r.late = fmt.Sprintf("%s left out: %s", text.Plural(r.Late, "run"), reason)
	}
	if !half {
		return
	}
	hint := fmt.Sprintf("\nIt had half of the time until the deadline of the test: the other half is for the tests after it. With a Budget, or as the only test "+
		"(go test -run '%s'), it has all the time", only(r.test))
	if r.late != "" {
		r.late += hint
	}
	if r.Unfinished != nil {
		r.Unfinished = fmt.Errorf("%w%s", r.Unfinished, hint)
	}
}
