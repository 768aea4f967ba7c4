package simulation

import "time"

// moments are when the actions of a run began and ended, by the index of their phase. All runs begin at the same virtual
// time. A run with faults follows the moments of the run without: if it is early, it lets time pass before an action, and
// its waits end when those end. Otherwise it would wake at other times of the day, and schedules would differ.
type moments map[int]moment

type moment struct {
	begun time.Time
	over  time.Time // the end of a wait; zero for other actions
}

// beginAction notes that the next action begins now. In a run with faults it first lets time pass until the action begins without
// them.
func (r *Run) beginAction() {
	if r.clock != nil && !r.isDown() {
		if early := time.Until(r.clock[len(r.script.phases)].begun); early > 0 {
			r.wait(early)
		}
	}
	r.script.moments[len(r.script.phases)] = moment{begun: time.Now()}
}

// waitUntilOver lets time pass for a wait of the user: until its end without faults, or for d in the run without faults.
func (r *Run) waitUntilOver(d time.Duration) {
	index := len(r.script.phases)
	if r.clock != nil && !r.clock[index].over.IsZero() {
		d = max(0, time.Until(r.clock[index].over))
	}
	begun := r.script.moments[index].begun
	r.script.moments[index] = moment{begun: begun, over: time.Now().Add(d)}
	r.wait(d)
}
