package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// runAll calls try for each list of faults, for as many at a time as acquireSlot allows.
func (e *explorer) runAll(all [][]plan.Fault, try func(faults []plan.Fault)) {
	e.options.Progress.plan(len(all))
	jobs := make(chan []plan.Fault)
	var workers sync.WaitGroup
	for range cap(slots()) {
		workers.Go(func() {
			for faults := range jobs {
				try(faults)
			}
		})
	}
	for _, faults := range all {
		jobs <- faults
	}
	close(jobs)
	workers.Wait()
}

// tryShared does the run that the faults share. If it fails, or if one of the faults does not happen in it, each of them is tried alone. If
// it hangs, no other run can begin.
func (e *explorer) tryShared(faults []plan.Fault) {
	r := e.runOne(faults, len(faults))
	switch {
	case r == nil:
	case r.Hung && len(r.Injected) > 0:
		r.Faults = r.Injected
		e.add(r, false)
	case len(faults) > 1 && !r.Hung && (r.Err != nil || len(r.Injected) < len(faults)):
		e.tryAlone(faults, r)
	default:
		e.add(r, false)
	}
}

// tryAlone does a run for each of the faults. shared is the run that they shared. If it has failed, and none of the others fails, it is a
// failure of its own: the operator survives each of the faults, and not all of them.
func (e *explorer) tryAlone(faults []plan.Fault, shared *result.Result) {
	e.options.Progress.plan(len(faults))
	failed := false
	for i := range faults {
		if r := e.runOne(faults[i:i+1:i+1], 1); r != nil {
			failed = failed || r.Err != nil
			e.add(r, false)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found.Runs++
	e.found.addRights(shared)
	if shared.Err != nil && !failed {
		shared.Faults = shared.Injected
		e.judge(shared)
	}
}

// tryPair does a run with a pair of faults.
func (e *explorer) tryPair(faults []plan.Fault) {
	if r := e.runOne(faults, 1); r != nil {
		e.add(r, true)
	}
}

// runOne waits until acquireSlot allows another run, and then does it. If the end of the exploration has come before the run begins or
// ends, runOne counts what is left out, and returns nil. tries is how many faults or pairs the run tries.
func (e *explorer) runOne(faults []plan.Fault, tries int) *result.Result {
	defer acquireSlot()()
	if e.isLate(tries) {
		return nil
	}
	defer e.options.Progress.begin(faults)()
	r := e.run(faults)
	if r.Unfinished == "" {
		return r
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addLate(tries)
	e.noteUnfinished(r)
	return nil
}

// isLate reports whether it is too late for another run. If it is, isLate counts what the run tries as left out.
func (e *explorer) isLate(tries int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := e.options.End
	late := e.found.Hung || !end.IsZero() && time.Now().After(end)
	if late {
		e.addLate(tries)
	}
	return late
}

// addLate counts faults or pairs that were not tried. The caller holds the lock.
func (e *explorer) addLate(tries int) {
	e.found.Late += tries
	e.found.Seed = e.options.Seed
}

// noteUnfinished notes a run with faults that the deadline has ended. The caller holds the lock.
func (e *explorer) noteUnfinished(r *result.Result) {
	e.found.Unfinished = cmp.Or(e.found.Unfinished, fmt.Sprintf("the run with %q was not finished: %s", plan.FormatFaults(r.Faults), r.Unfinished))
}

// add adds the result of a run with faults. pair means that the faults are a pair.
func (e *explorer) add(r *result.Result, pair bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found.Runs++
	e.noteRun(r, pair)
	if pair || e.options.Depth < 2 {
		return
	}
	plan.MarkRepeatedCrashes(r.Points, e.options.tries)
	for _, f := range r.Faults {
		e.singles = append(e.singles, plan.NewSingle(f, r.Points, e.kindsAt))
	}
}

// noteRun adds what a finished run with faults says about the operator. The caller holds the lock.
func (e *explorer) noteRun(r *result.Result, pair bool) {
	x := e.found
	x.Hung = x.Hung || r.Hung
	x.addRights(r)
	if !pair {
		x.Done += len(r.Faults)
	}
	switch {
	case !e.judge(r):
	case len(r.Injected) < len(r.Faults):
		x.Missed++
	case pair:
		x.Tried++
	default:
		for _, f := range r.Faults {
			x.Survived[f.Kind]++
		}
	}
}

// judge adds the error of a run, unless the scenario leaves out findings of its kind. It reports whether the run has no error. The caller
// holds the lock.
func (e *explorer) judge(r *result.Result) (survived bool) {
	kind := failure.KindOf(r.Err)
	silent := r.Err != nil && r.Trace.Length() > 0 && e.isSilent(kind)
	if silent {
		r.Silenced[kind] = true
	}
	e.found.countSilenced(r)
	if r.Err != nil && !silent {
		e.found.fail(r)
	}
	return r.Err == nil
}

// isSilent reports whether the scenario leaves out findings of the kind.
func (e *explorer) isSilent(kind kinds.Finding) bool { return slices.Contains(e.scenario.Silent, kind) }
