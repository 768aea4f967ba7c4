package run

import "time"

// wait lets time pass. The operator does what becomes due in this time.
func (d *driver) wait(lasts time.Duration) {
	end := time.Now().Add(lasts)
	step := max(time.Second, lasts/maxSleeps)
	for d.world.Failures.First() == nil && !d.operator.IsDown() { // without a process nothing happens until the user's next action
		at, whose := d.operator.Leader.Mgr.NextDue(nil, 1)
		if whose == nil || at.After(end) {
			break
		}
		d.sleepUntil(at.Add(timerDelay), step)
		d.work(0)
	}
	d.sleepUntil(end, step)
}

// maxSleeps is the number of steps into which a wait is divided. The operator's delays may divide it further.
const maxSleeps = 100

// sleepUntil lets time pass until end. It wakes after each step, since the operator may do something outside of its passes.
func (d *driver) sleepUntil(end time.Time, step time.Duration) {
	for d.world.Failures.First() == nil && time.Now().Before(end) {
		time.Sleep(min(step, time.Until(end)))
		if !d.operator.IsDown() {
			d.work(0)
		}
	}
}
