package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Options control how a scenario is explored.
type Options struct {
	Depth    int           // the largest number of faults in one run, 1 or 2
	Limit    int           // the largest number of runs with one fault; 0: no limit
	Pairs    int           // the largest number of runs with two faults
	Seed     uint64        // the seed of the samples
	Replay   string        // the faults of the only run, as FormatFaults returns them; "": all are explored
	Skip     []kinds.Fault // kinds that are left out
	NoFaults bool          // only the runs without faults are done
	End      time.Time     // no run begins after it, in real time; zero: no end
	Deadline Deadline      // ends runs that have begun
	Progress *Progress     // prints how far the exploration is; nil: nothing is printed
}

// Exploration is the result of [Explore].
type Exploration struct {
	Runs     int                 // finished runs: the baseline and runs with faults, but not the other references
	Survived map[kinds.Fault]int // runs with one fault that were survived
	Missed   int                 // runs in which a fault did not happen, since the operator did something else before
	Singles  int                 // possible runs with one fault
	Done     int                 // runs with one fault that were done
	Pairs    int                 // possible runs with two faults
	Tried    int                 // runs with two faults that were survived
	Seed     uint64              // the seed of the sample; 0 if there is none
	Late     int                 // runs that the options asked for, and that End prevented or Deadline ended
	Failures []Failure           // see fail for the order
	Replayed string              // the trace of a replay
	Rights   map[Right]string    // what the operator asked for in all runs, and a request that needs it
	Random   []string            // places at which two runs without faults differ

	// Unfinished says where the runs without faults were when the deadline ended them, or the first run with faults that it
	// ended. "": it ended none.
	Unfinished string

	Silenced map[kinds.Finding]int // runs with findings of the kinds that the scenario leaves out

	baseline *trace // the trace of the run without faults
}

// Failure is a run that failed.
type Failure struct {
	Kind   kinds.Finding // "": the scenario could not be run
	Faults []Fault
	Err    error
	Trace  string
	Past   []string // writes sent by processes whose cache was behind, since they began with an old one
	Varies bool     // a second run with the same faults ended otherwise

	length int // the number of lines of the trace
	trace  *trace
}

// Explore runs the scenario without faults, and then with each single fault at each point of that run, and with pairs
// of faults if the options say so. The scenario and the options must be valid.
func Explore(t *testing.T, s *Scenario, o Options) *Exploration {
	limited := *s
	limited.deadline = o.Deadline
	e := &explorer{t: t, scenario: &limited, options: o, found: &Exploration{
		Survived: map[kinds.Fault]int{}, Rights: map[Right]string{}, Silenced: map[kinds.Finding]int{},
	}}
	e.explore()
	return e.found
}

type explorer struct {
	t        *testing.T
	scenario *Scenario
	options  Options
	baseline *result
	refs     *references // nil: the baseline failed

	mu      sync.Mutex // guards what follows
	found   *Exploration
	singles []single // runs with one fault, from which pairs are made
}

func (e *explorer) explore() {
	defer e.options.Progress.start(e.t.Name())()
	inSlot(func() { e.baseline = e.run(nil) })
	e.found.addRights(e.baseline)
	e.found.baseline = e.baseline.trace
	if e.baseline.unfinished != "" {
		e.found.Unfinished = "the run without faults was not finished: " + e.baseline.unfinished
		return
	}
	e.found.Runs++
	if e.baseline.err != nil {
		e.found.fail(e.baseline)
		return
	}
	e.refs = e.scenario.newReferences(e.t, e.baseline)
	for _, r := range e.refs.others() {
		e.found.addRights(r)
		if e.found.Unfinished == "" && r.unfinished != "" {
			e.found.Unfinished = "one of the runs without faults, with which the others are compared, was not finished: " + r.unfinished
		}
	}
	if e.found.Unfinished != "" {
		return
	}
	e.found.Random = e.refs.randomPlaces()
	e.noteNoOps()
	e.found.countSilenced(e.baseline)
	switch {
	case e.refs.again.err != nil:
		e.found.fail(e.refs.again.varies())
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

// varies returns the result of a run without faults that failed, though another one did not.
func (r *result) varies() *result {
	r.err = finding{kindOf(r.err), fmt.Errorf("of two runs without faults one succeeds, and the other one fails: the operator is not deterministic, "+
		"such as by a random value, or by the order of a Go map\n%w", r.err)}
	return r
}

// repeatFirst repeats the run of the first failure, and notes whether it ends otherwise. Runs are deterministic. A
// different end means that the operator is not.
func (e *explorer) repeatFirst() {
	if len(e.found.Failures) == 0 || len(e.found.Failures[0].Faults) == 0 {
		return
	}
	first := &e.found.Failures[0]
	inSlot(func() {
		again := e.run(first.Faults)
		first.Varies = again.unfinished == "" && (again.err == nil || again.err.Error() != first.Err.Error())
	})
}

// run does a run with the faults. The caller has a slot for it.
func (e *explorer) run(faults []Fault) *result {
	r := e.scenario.guarded(func() *result { return e.scenario.run(e.t, faults, e.refs) })
	r.faults = faults
	return r
}

// replay does one run with the faults of the options.
func (e *explorer) replay() {
	faults, err := ParseFaults(e.options.Replay)
	if err != nil {
		e.found.fail(failed(fmt.Errorf("replay: %w", err)))
		return
	}
	var r *result
	inSlot(func() { r = e.run(faults) })
	if r.unfinished != "" {
		e.noteUnfinished(r)
		return
	}
	e.found.Runs++
	if injected := r.trace.faults(); r.err == nil && injected < len(faults) {
		r.err = fmt.Errorf("replay: %d of %s did not happen: the run did not reach that point, or the scenario has changed since", len(faults)-injected, Plural(len(faults), "fault"))
	}
	e.addResult(r)
	e.found.Replayed = r.trace.String()
}

// runAll does one run for each list of faults, as many at a time as there are slots.
func (e *explorer) runAll(all [][]Fault) {
	e.options.Progress.plan(len(all))
	jobs := make(chan []Fault)
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

// runOne does a run when there is a slot, unless it is too late then.
func (e *explorer) runOne(faults []Fault) {
	defer acquireSlot()()
	if end := e.options.End; !end.IsZero() && time.Now().After(end) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.addLate()
		return
	}
	defer e.options.Progress.begin(faults)()
	e.add(e.run(faults))
}

// noteUnfinished notes a run with faults that the deadline has ended. The caller holds the lock.
func (e *explorer) noteUnfinished(r *result) {
	e.found.Unfinished = cmp.Or(e.found.Unfinished, fmt.Sprintf("the run with %q was not finished: %s", FormatFaults(r.faults), r.unfinished))
}

// addLate counts a run that was not done or not finished. The caller holds the lock.
func (e *explorer) addLate() {
	e.found.Late++
	e.found.Seed = e.options.Seed
}

func (e *explorer) add(r *result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.unfinished != "" {
		e.addLate()
		e.noteUnfinished(r)
		return
	}
	e.found.Runs++
	e.addResult(r)
	if len(r.faults) == 1 && e.options.Depth > 1 {
		e.singles = append(e.singles, newSingle(r, e.kindsAt))
	}
}

// singleFaults returns every fault at every point of the run without faults, or a sample of them if there are more than
// the limit.
func (e *explorer) singleFaults() [][]Fault {
	var faults []Fault
	points := e.refs.points()
	for i := range points {
		p := &points[i]
		for _, kind := range e.kindsAt(p) {
			faults = append(faults, Fault{kind, p.name, p.nth})
		}
	}
	e.found.Singles = len(faults)
	faults = shuffled(faults, e.options.Seed)
	if limit := e.options.Limit; limit > 0 && limit < len(faults) {
		e.found.Seed = e.options.Seed
		faults = faults[:limit]
	}
	all := make([][]Fault, len(faults))
	for i := range faults {
		all[i] = faults[i : i+1 : i+1]
	}
	return all
}

// kindsAt returns the kinds of faults to try at a point.
func (e *explorer) kindsAt(p *point) []kinds.Fault {
	return slices.DeleteFunc(p.faults(), func(kind kinds.Fault) bool { return slices.Contains(e.options.Skip, kind) })
}

// pairs returns all pairs of a first fault and a second one at a later point, or a sample of them if there are more than
// the limit.
func (e *explorer) pairs() (sample [][]Fault) {
	e.found.Seed = e.options.Seed
	e.found.Pairs, sample = pairs(e.singles, e.options.Pairs, e.options.Seed)
	return sample
}

// addRights adds the rights that the operator asked for in a run.
func (x *Exploration) addRights(of *result) {
	for right, request := range of.rights {
		if known, ok := x.Rights[right]; !ok || request < known { // the order in which the runs end is random
			x.Rights[right] = request
		}
	}
}

func (e *explorer) addResult(of *result) {
	x := e.found
	x.addRights(of)
	if len(of.faults) == 1 {
		x.Done++
	}
	if of.err != nil && of.trace.length() > 0 && e.isSilent(kindOf(of.err)) {
		of.silenced[kindOf(of.err)] = true
		x.countSilenced(of)
		return
	}
	x.countSilenced(of)
	switch {
	case of.err != nil:
		x.fail(of)
	case of.injected < len(of.faults):
		x.Missed++
	case len(of.faults) == 1:
		x.Survived[of.faults[0].Kind]++
	default:
		x.Tried++
	}
}

// fail inserts a failure. Those that depend on timing come late, and those that only break a convention last; else those with
// fewer faults come first, then those with shorter traces.
func (x *Exploration) fail(of *result) {
	f := Failure{Faults: of.faults, Err: of.err, Trace: of.trace.sinceFault(), trace: of.trace, Past: of.past}
	if f.Trace != "" {
		f.Kind = kindOf(of.err)
	}
	x.insert(f)
}

// noteNoOps inserts a finding if passes of the run without faults sent writes although they had nothing to do.
func (e *explorer) noteNoOps() {
	of := e.baseline
	switch {
	case len(of.noOps) == 0:
		return
	case e.isSilent(kinds.BreaksConvention):
		of.silenced[kinds.BreaksConvention] = true
		return
	}
	err := fmt.Errorf("a pass that has nothing to do sends %s, which changes nothing: compare first, with the defaults that the API server sets, and write only what differs", strings.Join(of.noOps, ", "))
	e.found.insert(Failure{Kind: kinds.BreaksConvention, Err: err, Trace: of.trace.lastPassWith(of.noOps[0]), trace: of.trace})
}

func (e *explorer) isSilent(kind kinds.Finding) bool { return slices.Contains(e.scenario.Silent, kind) }

// countSilenced counts a run with findings that are left out.
func (x *Exploration) countSilenced(of *result) {
	for kind := range of.silenced {
		x.Silenced[kind]++
	}
}

// hasFaults reports whether a run with faults has failed.
func (x *Exploration) hasFaults() bool {
	return slices.ContainsFunc(x.Failures, func(f Failure) bool { return len(f.Faults) > 0 })
}

// insert inserts a failure in its order.
func (x *Exploration) insert(f Failure) {
	f.length = strings.Count(f.Trace, "\n")
	at, _ := slices.BinarySearchFunc(x.Failures, f, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(rankOf(a.Kind), rankOf(b.Kind)), cmp.Compare(len(a.Faults), len(b.Faults)), cmp.Compare(a.length, b.length), strings.Compare(FormatFaults(a.Faults), FormatFaults(b.Faults)))
	})
	x.Failures = slices.Insert(x.Failures, at, f)
	for i := 1; i < min(len(x.Failures), 3); i++ {
		x.Failures[i].trace = nil // only the trace of the first failure is shown whole
	}
}
