package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// Options control how a scenario is explored.
type Options struct {
	Depth    int           // the largest number of faults in one run: 1 or 2
	Limit    int           // the largest number of runs with one fault; 0: no limit
	Pairs    int           // the largest number of runs with two faults
	Seed     uint64        // the seed of the samples
	Replay   string        // the faults of the only run, as FormatFaults returns them; "": all are explored
	Skip     []kinds.Fault // kinds that are left out
	NoFaults bool          // only the runs without faults are done
	End      time.Time     // no run begins after it, in real time; zero: no end
	Deadline run.Deadline  // ends runs that have begun
	Progress *Progress     // prints how far the exploration is; nil: nothing is printed
}

// tries reports whether a kind of faults is not left out.
func (o *Options) tries(kind kinds.Fault) bool { return !slices.Contains(o.Skip, kind) }

// Explore runs the scenario without faults, and then with each single fault at each point of that run, and with pairs
// of faults if the options say so. The scenario and the options must be valid.
func Explore(t *testing.T, s *run.Scenario, o Options) *Exploration {
	defer collectLess()()
	limited := *s
	limited.Deadline = o.Deadline
	e := &explorer{t: t, scenario: &limited, options: o, found: &Exploration{
		Survived: map[kinds.Fault]int{}, Rights: map[request.Right]string{}, Silenced: map[kinds.Finding]int{},
	}}
	e.explore()
	return e.found
}

type explorer struct {
	t        *testing.T
	scenario *run.Scenario
	options  Options
	baseline *result.Result
	refs     *result.References // the runs without faults; nil if the first of them failed

	mu      sync.Mutex // guards what follows
	found   *Exploration
	singles []plan.Single // runs with one fault, from which pairs are made
}

func (e *explorer) explore() {
	defer e.options.Progress.start(e.t.Name())()
	inSlot(func() { e.baseline = e.run(nil) })
	e.found.addRights(e.baseline)
	e.found.baseline, e.found.Notes = e.baseline.Trace, e.baseline.Notes
	e.options.Progress.say(e.baseline.Notes)
	if e.baseline.Unfinished != "" {
		e.found.Unfinished = "the run without faults was not finished: " + e.baseline.Unfinished
		return
	}
	e.found.Runs++
	if e.baseline.Err != nil {
		if text := e.baseline.Err.Error(); strings.Contains(text, "duplicate metrics collector registration attempted") {
			e.baseline.Err = fmt.Errorf("%w\n%s", e.baseline.Err, onceRemedy) // the earlier process belongs to another exploration
		}
		e.found.fail(e.baseline)
		e.failUnsuccessful()
		return
	}
	e.refs = newReferences(e.t, e.scenario, e.baseline)
	for _, r := range e.refs.Others() {
		e.found.addRights(r)
		if r.Hung && r != e.refs.Again {
			e.found.fail(r)
			return
		}
		if e.found.Unfinished == "" && r.Unfinished != "" {
			e.found.Unfinished = "one of the runs without faults, with which the others are compared, was not finished: " + r.Unfinished
		}
	}
	if e.found.Unfinished != "" {
		return
	}
	if e.refs.Again.Err == nil {
		if failed := e.checkLeftover(); failed != nil {
			e.found.fail(failed)
			return
		}
	}
	e.found.Random = e.refs.RandomPlaces()
	e.noteConventions()
	e.noteLeftOutside()
	e.noteLeftEntries()
	e.noteRefusedCreates()
	e.noteTwins()
	e.found.countSilenced(e.baseline)
	switch {
	case e.refs.Again.Err != nil:
		e.found.fail(varies(e.refs.Again))
	case e.options.Replay != "":
		e.replay()
	default:
		singles := e.singleFaults()
		if e.options.NoFaults {
			return
		}
		e.runAll(singles)
		if e.options.Depth > 1 && !e.found.hasFaults() {
			e.runAll(e.pairs())
		}
		e.repeatFirst()
	}
}

// failUnsuccessful inserts a failure for each error of the run without faults about a step or a pass that did not succeed. It skips the
// error that already is the error of the run.
func (e *explorer) failUnsuccessful() {
	for _, err := range e.baseline.Unsuccessful {
		if err.Error() != e.baseline.Err.Error() {
			more := *e.baseline
			more.Err = err
			e.found.fail(&more)
		}
	}
}

// onceRemedy says what to do if Start fails because an earlier process of the test program has done something that can be done once.
const onceRemedy = "In a cluster each process begins a program. What a program does once, such as to register metrics in the global registry, belongs before Explore, or in a sync.Once"

// varies sets an error that says that one run without faults succeeded and this one failed. It returns the result.
func varies(r *result.Result) *result.Result {
	if start, failed := errors.AsType[failure.StartError](r.Err); failed {
		r.Err = fmt.Errorf("calling Start fails in the second process of this test program, and not in the first one: %w\n%s", start.Err, onceRemedy)
		return r
	}
	r.Err = failure.Finding{Kind: failure.KindOf(r.Err), Err: fmt.Errorf("of two runs without faults one succeeds, and the other one fails: the operator is not deterministic, "+
		"such as by a random value, by the order of a Go map, or by a package variable that keeps what an earlier run has put there\n%w", r.Err)}
	return r
}

// repeatFirst repeats the run of the first failure, and notes whether it ends in another way. Runs are deterministic, so a different end
// means that the operator is not deterministic.
func (e *explorer) repeatFirst() {
	if len(e.found.Failures) == 0 || len(e.found.Failures[0].Faults) == 0 || e.found.Hung {
		return
	}
	first := &e.found.Failures[0]
	inSlot(func() {
		again := e.run(first.Faults)
		first.Varies = again.Unfinished == "" && (again.Err == nil || again.Err.Error() != first.Err.Error())
	})
}

// run does a run with the faults. The caller has called acquireSlot.
func (e *explorer) run(faults []plan.Fault) *result.Result {
	r := e.scenario.Guarded(func(s *run.Scenario) *result.Result { return s.Run(e.t, faults, e.refs) })
	r.Faults = faults
	return r
}

// replay does one run with the faults of the options.
func (e *explorer) replay() {
	faults, err := plan.ParseFaults(e.options.Replay)
	if err != nil {
		e.found.fail(result.Failed(fmt.Errorf("replay: %w", err)))
		return
	}
	var r *result.Result
	inSlot(func() { r = e.run(faults) })
	if r.Unfinished != "" {
		e.noteUnfinished(r)
		return
	}
	e.found.Runs++
	if injected := r.Trace.Faults(); r.Err == nil && injected < len(faults) {
		r.Err = fmt.Errorf("replay: %d of %s did not happen: the run did not reach that point, or the scenario has changed since", len(faults)-injected, text.Plural(len(faults), "fault"))
	}
	e.addResult(r)
	e.found.Replayed = r.Trace.String()
}

// runAll does one run for each list of faults, as many at a time as acquireSlot allows.
func (e *explorer) runAll(all [][]plan.Fault) {
	e.options.Progress.plan(len(all))
	jobs := make(chan []plan.Fault)
	var workers sync.WaitGroup
	for range cap(slots()) {
		workers.Go(func() {
			for faults := range jobs {
				e.runOne(faults)
			}
		})
	}
	for _, faults := range all {
		jobs <- faults
	}
	close(jobs)
	workers.Wait()
}

// runOne waits until acquireSlot allows another run, and then does it, unless the end of the exploration has come.
func (e *explorer) runOne(faults []plan.Fault) {
	defer acquireSlot()()
	if e.isLate() {
		return
	}
	defer e.options.Progress.begin(faults)()
	e.add(e.run(faults))
}

// isLate reports whether it is too late for another run. If it is, isLate counts the run as left out.
func (e *explorer) isLate() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.options.End
	late := e.found.Hung || !end.IsZero() && time.Now().After(end)
	if late {
		e.addLate()
	}
	return late
}

// noteUnfinished notes a run with faults that the deadline has ended. The caller holds the lock.
func (e *explorer) noteUnfinished(r *result.Result) {
	e.found.Unfinished = cmp.Or(e.found.Unfinished, fmt.Sprintf("the run with %q was not finished: %s", plan.FormatFaults(r.Faults), r.Unfinished))
}

// addLate counts a run that was not done or not finished. The caller holds the lock.
func (e *explorer) addLate() {
	e.found.Late++
	e.found.Seed = e.options.Seed
}

func (e *explorer) add(r *result.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Unfinished != "" {
		e.addLate()
		e.noteUnfinished(r)
		return
	}
	e.found.Runs++
	e.addResult(r)
	if len(r.Faults) == 1 && e.options.Depth > 1 {
		plan.MarkRepeatedCrashes(r.Points, e.options.tries)
		e.singles = append(e.singles, plan.NewSingle(r.Faults[0], r.Points, e.kindsAt))
	}
}

// singleFaults returns every fault at every point of the run without faults, or a sample of them if there are more than
// the limit.
func (e *explorer) singleFaults() [][]plan.Fault {
	var faults []plan.Fault
	points := e.refs.Points()
	plan.MarkRepeatedCrashes(points, e.options.tries)
	for i := range points {
		p := &points[i]
		for _, kind := range e.kindsAt(p) {
			faults = append(faults, plan.Fault{Kind: kind, At: p.Name, Nth: p.Nth})
		}
		e.found.Repeated += len(p.Repeated())
		e.found.Spared += len(slices.DeleteFunc(p.SparedFaults(), func(kind kinds.Fault) bool { return !e.options.tries(kind) }))
	}
	e.found.Singles = len(faults)
	faults = plan.Shuffled(faults, e.options.Seed)
	if limit := e.options.Limit; limit > 0 && limit < len(faults) {
		e.found.Seed = e.options.Seed
		faults = faults[:limit]
	}
	all := make([][]plan.Fault, len(faults))
	for i := range faults {
		all[i] = faults[i : i+1 : i+1]
	}
	return all
}

// kindsAt returns the kinds of faults to try at a point.
func (e *explorer) kindsAt(p *plan.Point) []kinds.Fault {
	return slices.DeleteFunc(p.Faults(), func(kind kinds.Fault) bool { return !e.options.tries(kind) })
}

// pairs returns all pairs of a first fault and a second one at a later point, or a sample of them if there are more than
// the limit.
func (e *explorer) pairs() (sample [][]plan.Fault) {
	e.found.Seed = e.options.Seed
	e.found.Pairs, sample = plan.Pairs(e.singles, e.options.Pairs, e.options.Seed)
	return sample
}

func (e *explorer) addResult(of *result.Result) {
	x := e.found
	x.Hung = x.Hung || of.Hung
	x.addRights(of)
	if len(of.Faults) == 1 {
		x.Done++
	}
	if of.Err != nil && of.Trace.Length() > 0 && e.isSilent(failure.KindOf(of.Err)) {
		of.Silenced[failure.KindOf(of.Err)] = true
		x.countSilenced(of)
		return
	}
	x.countSilenced(of)
	switch {
	case of.Err != nil:
		x.fail(of)
	case of.Injected < len(of.Faults):
		x.Missed++
	case len(of.Faults) == 1:
		x.Survived[of.Faults[0].Kind]++
	default:
		x.Tried++
	}
}

func (e *explorer) isSilent(kind kinds.Finding) bool { return slices.Contains(e.scenario.Silent, kind) }
