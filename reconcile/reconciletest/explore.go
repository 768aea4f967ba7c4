package reconciletest

import (
	"errors"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation"
	"github.com/opblocks/opblocks/internal/simulation/console"
	"github.com/opblocks/opblocks/internal/simulation/run"
)

// Explore runs the scenario without faults, and then once for each fault at each point of that run where it can happen. It
// marks the test as failed, and logs the failure with the shortest trace, if the operator does not reach the same state,
// does not become quiet, or breaks another rule of the package. It also fails the test if the test's deadline comes before
// the runs without faults are done: see [Report.Unfinished]. It returns the report in any case.
//
// It prints its progress to the standard error: with go test -v from the start, else after ten seconds. When packages are
// named, go test shows that only with -v, or if the test fails in the end; in the current directory it shows it at once.
//
// Without -v it drops what is logged by controller-runtime's global logger while it runs, also by tests that run at the same time.
//
// It also writes the failure as an HTML page, which needs no network, and logs its address in the last line of the test. The page
// is in a folder of the user's below [os.TempDir], or in the folder that the environment variable RECONCILETEST_PAGES names. The
// file's name has the folder of the test's package, a hash of that folder's path, and the name of the test.
func Explore(t *testing.T, s Scenario, options ...Option) *Report {
	t.Helper()
	report := explore(t, s, newProgress(), deadlineOf(t), endRuns, options)
	if len(report.Failures) > 0 || report.Unfinished != nil {
		t.Error(report)
		report.logPage(t)
	} else {
		t.Log(report)
	}
	return report
}

// ExploreQuietly is [Explore], but neither fails the test nor prints anything: see [Report.Failures] and
// [Report.Unfinished].
func ExploreQuietly(t *testing.T, s Scenario, options ...Option) *Report {
	t.Helper()
	return explore(t, s, nil, deadlineOf(t), endRuns, options)
}

// ending returns what ends the runs of an exploration before the deadline.
type ending func(start, deadline time.Time) (runs run.Deadline, release func())

func explore(t *testing.T, s Scenario, progress *simulation.Progress, deadline time.Time, ending ending, options []Option) *Report {
	t.Helper()
	if !testing.Verbose() {
		defer console.Quieten()()
	}
	settings := newSettings(options)
	report := &Report{test: t.Name(), Skipped: settings.skip, Survived: map[FaultKind]int{}, faultless: settings.withoutFaults}
	start := time.Now()
	if err := validate(&s, settings); err != nil {
		report.Failures = []Failure{{Err: err}}
	} else {
		simulated := s.simulated()
		report.asks = simulated.Asks()
		simulated.Strict, simulated.Silent = settings.strict, settings.silent
		o := settings.simulated()
		o.Progress = progress
		var reason error
		share := shareOf(start, deadline, settings.hasBudget() || isAlone(t.Name()))
		o.End, reason = endOf(start, settings.budget, share)
		var release func()
		o.Deadline, release = ending(start, share)
		defer release()
		explored := simulation.Explore(t, simulated, o)
		report.add(explored)
		report.leaveOut(settings, reason, explored.Unfinished, explored.Hung, share.Before(deadline))
	}
	report.Elapsed = time.Since(start)
	return report
}

// validate returns an error if the scenario cannot be explored.
func validate(s *Scenario, settings *settings) error {
	if err := settings.validate(); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	if len(s.Actions) == 0 {
		return errors.New("the scenario has no Actions: without any, nothing happens to the operator")
	}
	return nil
}
