package run

import (
	"fmt"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// finishPass begins a pass and waits until it has ended. While the pass waits for something, events are delivered, the
// rest of the cluster works, and time passes.
func (r *Run) finishPass(work *fakemanager.Work) {
	work.Begin()
	p := r.Leader
	step, waited := time.Millisecond, time.Duration(0)
	for {
		r.Observe()
		if r.changeLeader() {
			continue
		}
		r.Mu.Lock()
		ended := p.Pass == nil || p.Dead
		r.Mu.Unlock()
		if ended || r.Failure() != nil {
			return
		}
		if p == r.Leader && (r.deliver() || r.StepCluster()) {
			continue
		}
		if waited > maxFreeze && p.Mgr.Cache().Thaw() {
			continue
		}
		if waited > maxPassTime {
			r.Fail(fmt.Errorf("pass over %s %s has not ended after %s of virtual time", work.Target.Controller, work.Target.Request, maxPassTime))
			return
		}
		time.Sleep(step)
		waited += step
		step *= 2
	}
}

// changeLeader starts another replica and lets it become quiet. Then the old leader finishes its pass and ends. It reports
// false if no pass waits for a new leader.
func (r *Run) changeLeader() bool {
	r.Mu.Lock()
	old := r.Waiting
	r.Waiting = nil
	r.Mu.Unlock()
	if old == nil {
		return false
	}
	r.StartProcess()
	r.settle()
	r.Trace.Add(trace.Row{What: "the old leader continues its pass"})
	close(old.Resume)
	r.Observe()
	for waited := time.Millisecond; waited < maxPassTime; waited *= 2 {
		r.Mu.Lock()
		ended := old.Process.Pass == nil
		r.Mu.Unlock()
		if ended {
			break
		}
		time.Sleep(waited)
		r.Observe()
	}
	r.Mu.Lock()
	old.Process.Die()
	r.Mu.Unlock()
	r.Trace.Add(trace.Row{What: "the old leader ends"})
	return true
}
