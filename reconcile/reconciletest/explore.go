package reconciletest

import (
	"errors"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/console"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
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
//
// # What goes wrong
//
// The process dies before or after a write, and starts again at once or after the user's next action. That action also
// happens in the middle of a pass. A write is stored and its answer is lost. Another writer writes or deletes the
// object just before. The server refuses a request. The watch breaks, or the cache is behind for some passes. A new
// process sees the past: its cache is older than the cache of the process before it. Another replica takes over in the
// middle of a pass. The finalizer of another controller outlasts the finalizer of the operator. [Faults] lists all.
//
// # What must hold
//
//   - Whenever the operator is quiet after an action, the objects and what is outside of the cluster are the same as
//     without faults. UIDs, resource versions, times and generated names are not compared, even where they appear in
//     other fields, or if their object is gone. See "With what a run is compared".
//   - Without faults each step of package reconcile has succeeded for each object when the operator is quiet for the last time before the
//     object's deletion, or at the end, and the last pass of another reconciler has not ended in an error, by Requeue, or with a delay after a
//     write that the API server refused. A terminal error is judged like any other. [Scenario.Unready] says what fails on purpose:
//     https://github.com/opblocks/opblocks/blob/main/docs/testing.md#what-must-succeed-without-faults.
//   - The operator becomes quiet, and then rests: one more pass of every object, which nothing has triggered, changes
//     nothing. If it changes something, a watch may be missing, and the failure names the change that triggered no
//     pass. If a fault happens in that pass, the operator has to become quiet again, and the check is repeated. After
//     [DoExternal] this is not checked, since the operator may not know of the change yet.
//   - A pass that reads an object by its name in the cache finds the object if it exists. If the cache's selector or namespaces leave
//     the object out, the pass has to read it past the cache. The object that is reconciled does not count.
//   - No object is written more than twice as often as without the fault, plus ten times. No object that the operator
//     created is deleted more often. Objects with generated names are counted together if they have the same kind,
//     prefix and owner, and those beyond the largest number without faults may be deleted. No Job or Pod that the
//     operator deleted is created again more often, and no pod template is changed more often. A suspended Job counts as
//     created when it is resumed, and may be deleted before that. A process that sees the past may change a pod template
//     back and forward again. It may delete only what the operator created since then.
//   - What another writer wrote just before is still there, unless the user or another controller has removed it.
//   - While another controller's finalizer holds an object whose deletion the operator has finished, the last pass over it
//     has not ended in an error.
//   - A pass that has nothing to do sends no write that changes nothing. This is checked without faults.
//   - No pass panics, sends more than 10,000 requests, takes more than an hour of virtual time, or returns both a delay and
//     an error (controller-runtime ignores that delay). No goroutine is left at the end of a run in which no process
//     has crashed. If the run without faults leaves one goroutine from a place in the code, that only breaks a convention,
//     and runs with faults may leave goroutines from this place too.
//   - No value of a Secret with 8 bytes or more appears in an object of another kind that the operator writes, in an
//     event, in the log of an error, or in a log line of level 0. Values under well-known keys that are not secret, such
//     as username and tls.crt, are allowed.
//   - In an API of package fakeapi, nothing exists twice, nothing is left whose object is deleted, and nothing of others is changed.
//   - [Scenario.Finally] and [Scenario.Always] return no error.
//
// # With what a run is compared
//
// The run without faults may itself be wrong. So there are other runs without faults, which start the operator late: after
// one, two or more of the first actions, which the user does without waiting in between. An action can come before the start
// only if it is neither a [Wait] nor a [DoExternal], and does not fail without the operator. A run with faults is right if
// it equals the run without faults, or the run with the late start. Otherwise it is compared with the one of the two from
// which it differs less. If the two differ from each other in a field, the field is reported as "depends on timing", with
// all values, and nobody knows which value is right. Lists whose entries all appear in one of the two, and finished Jobs, are
// not reported. Neither are values that differ between two runs without faults: [Report.Random] has these.
//
// Some other values are right too. After an action that is not the last one, a value may be one that the operator reaches by
// itself without faults, if the user waits after the action. While the user only waits, a value may be one that a run
// without faults has at another moment of the same waits, except at their end. With [Options.EachAction] neither is allowed.
// Actions and waits of all runs begin and end at the same virtual time, unless a fault takes longer.
//
// # How a run works
//
// A run is deterministic. It happens in a bubble of testing/synctest: time.Now is virtual, and so are timers, backoff
// and the delays that a reconciler returns. These delays end a millisecond late, as real ones end a little late. Events are
// delivered one by one, and one pass runs at a time. When the operator has nothing left to do, the garbage collector, the
// simulated controllers and a [SteppingExternal] take one step. When they have nothing to do either, time moves on to the
// next delayed pass. The operator is quiet when no pass is due within
// [Scenario.Horizon] of the last change or fault. With the default horizon, an object whose delayed passes have changed nothing
// three times in a row is not waited for any longer. Then the next action happens.
//
// Reads by the manager's client, or by [Process.Client], come from a cache that shows the changes whose events have been
// delivered. Reads of unstructured objects, and all reads by clients from [Process.Config], come from the API server.
func Explore(t *testing.T, s Scenario) *Report {
	t.Helper()
	report := explore(t, s, newProgress(), deadlineOf(t), endRuns)
	if len(report.Failures) > 0 || report.Unfinished != nil {
		t.Error(report)
		report.logPage(t)
	} else {
		t.Log(report)
	}
	return report
}

// ExploreQuietly is like [Explore], but neither fails the test nor prints anything: see [Report.Failures] and [Report.Unfinished].
func ExploreQuietly(t *testing.T, s Scenario) *Report {
	t.Helper()
	return explore(t, s, nil, deadlineOf(t), endRuns)
}

// ending is the type of endRuns. It ends the runs of an exploration that have begun before the deadline comes.
type ending func(start, deadline time.Time) (runs run.Deadline, release func())

func explore(t *testing.T, s Scenario, progress *simulation.Progress, deadline time.Time, ending ending) *Report {
	t.Helper()
	if !testing.Verbose() {
		defer console.Quieten()()
	}
	report := &Report{test: t.Name(), Skipped: s.Options.SkipFaults, Survived: map[FaultKind]int{}, faultless: s.Options.WithoutFaults}
	start := time.Now()
	if err := validate(&s); err != nil {
		report.Failures = []Failure{{Err: err}}
	} else {
		simulated := s.simulated()
		report.asks = simulated.Asks()
		simulated.Strict, simulated.Silent = s.Options.EachAction, s.Options.silent()
		o := s.Options.simulated()
		o.Progress = progress
		var reason error
		share := shareOf(start, deadline, s.Options.Budget > 0 || isAlone(t.Name()))
		o.End, reason = endOf(start, s.Options.Budget, share)
		var release func()
		o.Deadline, release = ending(start, share)
		defer release()
		explored := simulation.Explore(t, simulated, o)
		report.add(explored)
		report.leaveOut(s.Options.Budget, reason, explored.Unfinished, explored.Hung, share.Before(deadline))
	}
	report.Elapsed = time.Since(start)
	return report
}

// validate returns an error if the scenario cannot be explored.
func validate(s *Scenario) error {
	if err := s.Options.validate(); err != nil {
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
