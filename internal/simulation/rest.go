package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/state"
)

// restTime is how much later a pass runs for which there is no reason. An operator that writes the time of each pass
// shows by that it does not rest.
const restTime = 2 * time.Second

// checkRest has every known object reconciled once more, though nothing has changed. The operator must not write
// anything. It returns false if a fault struck meanwhile: then the result means nothing.
func (r *Run) checkRest() (undisturbed bool) {
	struck := r.injectedSoFar()
	time.Sleep(restTime)
	before := r.version()
	r.setCause("nothing: the operator is quiet")
	r.processes.leader.manager.EnqueueKnown()
	pass := r.passes.begun
	r.setProbing(true)
	defer r.setProbing(false)
	for range maxPasses {
		ran := r.failure() == nil && r.nextPass()
		switch {
		case r.injectedSoFar() > struck:
			return false
		case !ran:
			return true
		case r.version() != before:
			r.fail(r.unrestError(pass, before))
			return true
		}
	}
	return true
}

func (r *Run) setProbing(probing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = probing
}

// injectedSoFar returns how many of the planned faults have struck.
func (r *Run) injectedSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.plan.injected)
}

// unrestError explains why one more pass, after the given one, changed something.
func (r *Run) unrestError(pass int, before version) error {
	var wrote []string
	for _, request := range r.log.all() {
		if request.Pass > pass && request.Changed {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("the operator does not rest: while one more pass ran, something outside of any pass changed %s", r.changedSince(before))
	}
	if missed := r.missedChanges(); len(missed) > 0 {
		return fmt.Errorf("a watch is missing: no pass came after %s, and when the operator was quiet one more pass still had to %s\n"+
			"Watch that kind, or correct the watch's predicate or mapping", strings.Join(missed, ", "), strings.Join(wrote, ", "))
	}
	return fmt.Errorf("the operator does not rest: if nothing has changed a pass must write nothing, and one more pass still had to %s%s",
		strings.Join(wrote, ", "), r.lastChangeOf(wrote))
}

// changedSince names what changed, on the server or else outside of the cluster.
func (r *Run) changedSince(before version) string {
	var names []string
	for _, change := range r.server.Changes(before.revision) {
		names = append(names, change.GVK.Kind+" "+nameOf(change.Key))
	}
	if len(names) == 0 {
		return "what is outside of the cluster"
	}
	return strings.Join(slices.Compact(names), ", ")
}

// notQuietError explains why the operator does not become quiet.
func (r *Run) notQuietError() error {
	counts := map[string]int{}
	most := ""
	for _, request := range r.log.all() {
		if !request.Changed {
			continue
		}
		name := request.String()
		if counts[name]++; most == "" || counts[name] > counts[most] {
			most = name
		}
	}
	if most == "" {
		return fmt.Errorf("it does not become quiet in %d passes, and none of them changes anything", maxPasses)
	}
	return fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s", maxPasses, most, counts[most], r.lastChangeOf([]string{most}))
}

// missedChanges returns the changes of what the last pass read that happened after the pass before it over the same
// object: they triggered no pass.
func (r *Run) missedChanges() []string {
	last, read := r.log.lastPass()
	var missed []string
	for _, change := range r.trace.changesBefore(last) {
		kind := strings.Fields(change)[1]
		if read[kind] && !slices.Contains(missed, change) {
			missed = append(missed, change)
		}
	}
	return missed
}

// lastChangeOf returns the fields that the last request of one of the names changed, as an addition to an error.
func (r *Run) lastChangeOf(names []string) string {
	request := r.log.lastChange(names)
	if request == nil {
		return ""
	}
	for _, change := range slices.Backward(r.server.Changes(0)) {
		if change.GVK != request.Kind || change.Key != request.Object || change.Old == nil || change.New == nil {
			continue
		}
		if lines := state.ChangedFields(change.Old, change.New); len(lines) > 0 {
			return ":\n  " + strings.Join(lines, "\n  ")
		}
		return ""
	}
	return ""
}
