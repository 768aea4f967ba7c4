package run

import (
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// finishPass begins a pass and waits until it has ended. While the pass waits for something, events are delivered, the
// rest of the cluster works, and time passes.
func (d *driver) finishPass(work *fakemanager.Work) {
	work.Begin()
	p := d.operator.Leader
	step, waited := time.Millisecond, time.Duration(0)
	for {
		d.Observe()
		if d.changeLeader() {
			continue
		}
		d.world.Mu.Lock()
		ended := p.Pass == nil || p.Dead
		d.world.Mu.Unlock()
		if ended || d.world.Failures.First() != nil {
			return
		}
		if p == d.operator.Leader && (d.deliver() || d.world.StepCluster()) {
			continue
		}
		if waited > maxFreeze && p.Mgr.Cache().Kinds.Thaw() {
			continue
		}
		if waited > maxPassTime {
			d.world.Failures.Add(fmt.Errorf("pass over %s %s has not ended after %s of virtual time", work.Target.Controller, work.Target.Request, maxPassTime))
			return
		}
		time.Sleep(step)
		waited += step
		step *= 2
	}
}

// changeLeader starts another replica and lets it become quiet. Then the old leader finishes its pass and ends. It reports
// false if no pass waits for a new leader.
func (d *driver) changeLeader() bool {
	d.world.Mu.Lock()
	old := d.operator.Waiting
	d.operator.Waiting = nil
	d.world.Mu.Unlock()
	if old == nil {
		return false
	}
	d.operator.StartProcess()
	d.settle()
	d.world.Trace.Add(trace.Row{What: "the old leader continues its pass"})
	close(old.Resume)
	d.Observe()
	for waited := time.Millisecond; waited < maxPassTime; waited *= 2 {
		d.world.Mu.Lock()
		ended := old.Process.Pass == nil
		d.world.Mu.Unlock()
		if ended {
			break
		}
		time.Sleep(waited)
		d.Observe()
	}
	d.world.Mu.Lock()
	old.Process.Die()
	d.world.Mu.Unlock()
	d.world.Trace.Add(trace.Row{What: "the old leader ends"})
	return true
}
