package plan

import "github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"

// Share distributes faults over as few runs as it finds, in their order. A run has at most one fault for each action of the user: when the
// next one happens, the operator has recovered from the one before, and has reached the state that it reaches without faults. Three kinds
// of faults limit what follows in the same run:
//
//   - What ends the process also ends what an earlier fault may have left in the memory of the process. So a run has either only faults that
//     end the process, or only others.
//   - What brings the user's next action forward takes the place of a fault of that action too.
//   - After a fault that shows the past, or that passes over a webhook, the run is judged less strictly. So such a fault is the last one.
func Share(faults []Fault) [][]Fault {
	var runs []*shared
	for i := range faults {
		f := &faults[i]
		at := -1
		for j, r := range runs {
			if r.hasRoomFor(f) {
				at = j
				break
			}
		}
		if at < 0 {
			at = len(runs)
			runs = append(runs, &shared{ends: kinds.RuleOf(f.Kind).Ends})
		}
		runs[at].faults = append(runs[at].faults, *f)
	}
	all := make([][]Fault, len(runs))
	for i, r := range runs {
		all[i] = r.faults
	}
	return all
}

// shared is a run that several faults share.
type shared struct {
	ends   bool // its faults end the process
	faults []Fault
}

// hasRoomFor reports whether the fault can share the run.
func (r *shared) hasRoomFor(f *Fault) bool {
	rule := kinds.RuleOf(f.Kind)
	if rule.Ends != r.ends {
		return false
	}
	for i := range r.faults {
		other := &r.faults[i]
		if !before(f, other) && !before(other, f) {
			return false
		}
	}
	return true
}

// before reports whether a fault is over before the other one can happen, and leaves room for it.
func before(f, other *Fault) bool {
	return !kinds.RuleOf(f.Kind).IsLast() && lastAction(f) < other.Since.Action
}

// lastAction returns the last action in which the fault happens, as a number of actions that have begun.
func lastAction(f *Fault) int {
	if rule := kinds.RuleOf(f.Kind); rule.NeedsNextAction || rule.NeedsRecreation {
		return f.Since.Action + 1
	}
	return f.Since.Action
}
