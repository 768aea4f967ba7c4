package run

import "time"

// waitForNextDue lets time pass until a delayed request becomes due. It reports false if none does within the horizon.
// Requests that have used up their attempts do not count.
func (r *Run) waitForNextDue(p *progress) bool {
	at, whose := r.Leader.Mgr.NextDue(p.attempts, r.scenario.enoughAttempts())
	if whose == nil || at.After(p.quietSince.Add(p.horizon)) {
		return false
	}
	time.Sleep(time.Until(at) + timerDelay)
	p.attempts.Count(whose)
	return true
}

// wait lets time pass. The operator does what becomes due in this time.
func (r *Run) wait(d time.Duration) {
	end := time.Now().Add(d)
	step := max(time.Second, d/maxSleeps)
	for r.Failure() == nil && !r.IsDown() { // a process that is down does nothing until the user's next action
		at, whose := r.Leader.Mgr.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			break
		}
		r.sleepUntil(at.Add(timerDelay), step)
		r.work(0)
	}
	r.sleepUntil(end, step)
}

// maxSleeps is how many times a wait is interrupted at most, beside the delays that become due.
const maxSleeps = 100

// sleepUntil lets time pass. It interrupts its sleep after each step, since the operator may act outside of its passes.
func (r *Run) sleepUntil(end time.Time, step time.Duration) {
	for r.Failure() == nil && time.Now().Before(end) {
		time.Sleep(min(step, time.Until(end)))
		if !r.IsDown() {
			r.work(0)
		}
	}
}
