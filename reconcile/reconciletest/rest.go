package reconciletest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// checkDeeds makes sure that the operator has not done more often than without faults what does harm each time: replaced
// pods, run a Job again, or deleted something.
func (r *run) checkDeeds(without *phase) error {
	for key, n := range r.rollouts {
		if want := without.rollouts[key]; n > want {
			return fmt.Errorf(key.deed(), key.kind.Kind, nameOf(key.name), plural(n, "time"), plural(want, "time"))
		}
	}
	for key, n := range r.deleted {
		if want := without.deleted[key]; n > want && r.baseline.made[key] && !r.isNamedByServer(key) {
			return fmt.Errorf("it deletes %s %s %s, without faults %s", key.kind.Kind, nameOf(key.name), plural(n, "time"), plural(want, "time"))
		}
	}
	return nil
}

// deed says what counts as a rollout, of which object, how often, and how often without faults.
func (k *madeKey) deed() string {
	if k.runsOnce() {
		return "it begins the work of %s %s anew %s, without faults %s"
	}
	return "it changes the pod template of %s %s %s, without faults %s"
}

// runsOnce reports whether objects of the kind do their work when they are created.
func (k *madeKey) runsOnce() bool {
	return k.kind.Group == "batch" && k.kind.Kind == "Job" || k.kind.Group == "" && k.kind.Kind == "Pod"
}

// checkRest has every known object reconciled once more, though nothing has changed: that writes nothing. It
// reports false if a fault struck meanwhile: what comes of that tells nothing about the rest.
func (r *run) checkRest() (undisturbed bool) {
	faults := r.struckSoFar()
	time.Sleep(restTime)
	before := r.moment()
	r.setCause("nothing: all is quiet")
	for _, c := range r.process.controllers {
		c.enqueueKnown()
	}
	pass := r.pass
	r.probe(true)
	defer r.probe(false)
	for range maxPasses {
		ran := r.failure() == nil && r.next()
		switch {
		case r.struckSoFar() > faults:
			return false
		case !ran:
			return true
		case r.moment() != before:
			r.fail(r.unrest(pass, before))
			return true
		}
	}
	return true
}

func (r *run) probe(begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probing = begins
}

// struckSoFar gives how many of the planned faults came to their point.
func (r *run) struckSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.struck)
}

// unrest explains why a pass changed something that nothing had asked for.
func (r *run) unrest(pass int, before moment) error {
	var wrote []string
	for _, request := range r.ledger.all() {
		if request.Pass > pass && request.Changed {
			wrote = append(wrote, request.String())
		}
	}
	if len(wrote) == 0 {
		return fmt.Errorf("it is not quiet: while one more pass ran over what has not changed, something outside of any pass changed %s", r.changedSince(before))
	}
	unseen := r.missingWatch()
	if unseen != "" {
		return fmt.Errorf("a watch is missing: all was quiet, and one more pass still had to %s: %s", strings.Join(wrote, ", "), unseen)
	}
	return fmt.Errorf("it is not quiet: one more pass over what has not changed does %s%s", strings.Join(wrote, ", "), r.flapping(wrote))
}

// changedSince names what changed, on the server or else outside of the cluster.
func (r *run) changedSince(before moment) string {
	var names []string
	for _, change := range r.server.Changes(before.revision) {
		names = append(names, change.GVK.Kind+" "+nameOf(change.Key))
	}
	if len(names) == 0 {
		return "what is outside of the cluster"
	}
	return strings.Join(slices.Compact(names), ", ")
}

// restless explains why the operator does not come to rest.
func (r *run) restless() error {
	counts := map[string]int{}
	most := ""
	for _, request := range r.ledger.all() {
		if !request.Changed {
			continue
		}
		name := request.String()
		if counts[name]++; most == "" || counts[name] > counts[most] {
			most = name
		}
	}
	if most == "" {
		return fmt.Errorf("it does not become quiet: %d passes, and none changes anything", maxPasses)
	}
	return fmt.Errorf("it does not become quiet in %d passes: %s, %d times%s", maxPasses, most, counts[most], r.flapping([]string{most}))
}

// restTime is how much later a pass comes for which there is no reason: an operator that writes down
// when it was there last does so again.
const restTime = 2 * time.Second

// slack is how many writes of an object a fault may cost beyond as many again as without it.
const slack = 10
