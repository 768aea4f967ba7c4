package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// restTime is the time between the moment at which the operator is quiet and the passes of checkRest. It is above a
// second, so that an operator that writes the time of each pass is found.
const restTime = 2 * time.Second

// maxDueWork is how often in a phase work may become due in the moments before the passes of checkRest.
const maxDueWork = 3

// passRestTime lets time pass before the passes of checkRest. It returns false if work became due in this time, such as
// a scheduled task: then the operator is not quiet yet. due counts how often that has happened.
func (r *Run) passRestTime(due *int) (quiet bool) {
	before := r.version()
	at, whose := r.processes.leader.manager.NextDue(nil, 1)
	if whose == nil || time.Until(at) > restTime || *due == maxDueWork {
		time.Sleep(restTime)
		return true
	}
	if r.wait(restTime); r.version() == before {
		return true
	}
	*due++
	return false
}

// checkRest runs one more pass of every known object, though nothing has changed. The run fails if that changes
// something. checkRest returns false if a fault was injected, or work became due before the passes: then it has checked
// nothing. due counts how often work became due.
func (r *Run) checkRest(due *int) (undisturbed bool) {
	injected := r.injectedSoFar()
	if !r.passRestTime(due) || r.injectedSoFar() > injected {
		return false
	}
	before := r.version()
	r.setCause("nothing: the operator is quiet")
	r.processes.leader.manager.EnqueueKnown()
	pass := r.passes.begun
	r.keepOutcomes()
	r.setProbing(true)
	defer r.setProbing(false)
	for range maxPasses {
		ran := r.failure() == nil && r.nextPass()
		switch {
		case r.injectedSoFar() > injected:
			return false
		case !ran:
			r.noteNoOps(pass)
			if err := r.checkHidden(pass); err != nil {
				r.fail(err)
			}
			return true
		case r.version() != before:
			if r.noteSilenced(kinds.DoesNotRest) {
				continue // the other objects have their passes too
			}
			r.fail(r.unrestError(pass, before))
			return true
		}
	}
	return true
}

// noteSilenced is silence for a caller that does not hold the lock.
func (r *Run) noteSilenced(kind kinds.Finding) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silence(kind)
}

func (r *Run) setProbing(probing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = probing
}

// injectedSoFar returns how many of the planned faults have been injected.
func (r *Run) injectedSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.plan.injected)
}

// unrestError explains why checkRest found a change. pass is the last pass before it, and before the version then.
func (r *Run) unrestError(pass int, before version) error {
	return finding{kinds.DoesNotRest, r.explainUnrest(pass, before)}
}

func (r *Run) explainUnrest(pass int, before version) error {
	var wrote []string
	for _, request := range r.log.all() {
		if request.Pass > pass && request.Changed {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("the operator does not rest: while one more pass ran, something outside of any pass changed %s", r.changedSince(before))
	}
	if request := r.swallowed(wrote, pass); request != nil {
		return fmt.Errorf("a refused write is not sent again: pass %d returned no error after %s (%w), and when the operator was quiet one more pass still had to send it\n"+
			"Return the error, so that the pass is retried", request.Pass, request.String(), request.Err)
	}
	missed, changed := r.missedChanges(), r.lastChangeOf(wrote)
	if !missed.none() && !r.writesAgain(wrote) {
		return missed.explain(wrote)
	}
	return fmt.Errorf("the operator does not rest: if nothing has changed a pass must write nothing, and one more pass still had to %s%s",
		strings.Join(wrote, ", "), changed)
}

// swallowed returns the last of the requests before checkRest, if it was refused, and its pass, the last one over its object, ended
// without an error or a delay. It returns nil otherwise. pass is the last pass before checkRest.
func (r *Run) swallowed(wrote []string, pass int) *Request {
	for _, request := range slices.Backward(r.log.all()) {
		if request.Pass == 0 || request.Pass > pass || !slices.Contains(wrote, request.String()) {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range r.passes.before {
			if o.pass == request.Pass && o.err == nil && o.result.RequeueAfter == 0 && request.isRefused() {
				return &request
			}
		}
		return nil
	}
	return nil
}

// writesAgain runs more passes after checkRest. It reports whether they send one of the requests once more, and change
// something by it. Then no event is missing: the operator would go on like that. The run has failed already, and these
// passes leave no trace in it.
func (r *Run) writesAgain(wrote []string) bool {
	r.mu.Lock()
	failures := len(r.failures)
	r.mu.Unlock()
	rows, before := r.trace.length(), len(r.log.all())
	r.work(0)
	time.Sleep(restTime)
	r.setCause("nothing: the operator is quiet")
	r.processes.leader.manager.EnqueueKnown()
	for range maxPasses {
		if r.failure() != nil || !r.nextPass() {
			break
		}
	}
	r.mu.Lock()
	r.failures = r.failures[:failures]
	r.mu.Unlock()
	r.trace.cut(rows)
	return slices.ContainsFunc(r.log.all()[before:], func(request Request) bool {
		return request.Changed && slices.Contains(wrote, request.String())
	})
}

// changedSince names the objects that changed on the server; if there are none, what is outside of the cluster.
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
		return finding{kinds.DoesNotRest, fmt.Errorf("it does not become quiet in %d passes, and none of them changes anything", maxPasses)}
	}
	return finding{kinds.DoesNotRest, fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s", maxPasses, most, counts[most], r.lastChangeOf([]string{most}))}
}

// lastChangeOf returns the fields that the last request with one of the names changed, as the end of an error message. It
// returns "" if there are none.
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
