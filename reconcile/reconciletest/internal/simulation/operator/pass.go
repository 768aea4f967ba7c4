package operator

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Passes are the passes of a run. The run's lock guards them.
type Passes struct {
	Begun   int                            // the number of passes so far
	batch   int                            // the number of the current batch of requests; see fakemanager.Options
	cause   string                         // why requests are enqueued now
	Outcome map[fakemanager.Target]Outcome // how the last pass of each object ended
	Before  map[fakemanager.Target]Outcome // the same before the check that one more pass changes nothing
	verdict verdicts                       // whether the passes succeed, in a run without faults
}

func newPasses() Passes {
	return Passes{Outcome: map[fakemanager.Target]Outcome{}, verdict: newVerdicts()}
}

// pass is a pass that runs now.
type pass struct {
	number   int
	target   fakemanager.Target
	requests int // the number of requests so far, including reads of the cache
}

// String returns the pass's number and object.
func (p *pass) String() string {
	return fmt.Sprintf("pass %d over %s", p.number, DescribeTarget(p.target))
}

// DescribeTarget returns the controller and the object of a pass.
func DescribeTarget(t fakemanager.Target) string {
	return t.Controller + " " + state.NameOf(t.Request.NamespacedName)
}

// WaitingPass is a pass of an old leader. It is suspended until the new leader is quiet.
type WaitingPass struct {
	Process *Process
	Resume  chan struct{}
}

// runPass calls a reconciler and records the call. It returns an error if the reconciler panics.
func (p *Process) runPass(target fakemanager.Target, cause string, reconcile func() (ctrl.Result, error)) (result ctrl.Result, err error) {
	pass := p.operator.beginPass(p, target, cause)
	defer func() {
		if r := recover(); r != nil {
			err = failure.Panic(pass.String(), r)
			p.operator.panicked(p, err)
		}
		p.operator.endPass(p, pass, result, err)
	}()
	return reconcile()
}

func (o *Operator) beginPass(p *Process, target fakemanager.Target, cause string) *pass {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	o.Passes.Begun++
	p.Pass = &pass{number: o.Passes.Begun, target: target}
	o.world.Trace.Add(trace.Row{Pass: p.Pass.number, What: trace.PassPrefix + DescribeTarget(target), Answer: cause})
	return p.Pass
}

func (o *Operator) endPass(p *Process, ended *pass, result ctrl.Result, err error) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	p.Pass = nil
	o.Passes.Outcome[ended.target] = Outcome{ended.number, result, err}
	VerdictOf(o).passEnded(ended, err)
	if at := time.Now().Add(result.RequeueAfter); o.world.References == nil && o.world.RealTime == "" && world.IsRealTime(at) {
		o.world.RealTime = fmt.Sprintf("%s asks for another one after %s", ended, result.RequeueAfter)
	}
	if p.Dead {
		return
	}
	switch {
	case err != nil:
		o.world.Trace.Add(trace.Row{Pass: ended.number, What: "  the pass ends", Answer: "error: " + err.Error()})
		if result.RequeueAfter > 0 {
			o.world.Failures.AddLocked(failure.Finding{Kind: kinds.BreaksConvention, Cause: "a pass returns RequeueAfter beside an error", Err: fmt.Errorf("pass %d returns RequeueAfter %s beside an error, and controller-runtime ignores the delay: %w", ended.number, result.RequeueAfter, err)})
		}
	case result.RequeueAfter > 0:
		o.world.Trace.Add(trace.Row{Pass: ended.number, What: "  the pass ends", Answer: "again after " + result.RequeueAfter.String()})
	}
}

func (o *Operator) panicked(p *Process, err error) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if !p.Dead { // a dead process may panic, since all its requests are refused
		o.world.Failures.AddLocked(err)
	}
}

// cause returns the number of the current batch, and why requests are enqueued now.
func (o *Operator) cause() (batch int, cause string) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	return o.Passes.batch, o.Passes.cause
}

// SetCause sets why requests are enqueued from now on, and begins a new batch.
func (o *Operator) SetCause(cause string) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	o.Passes.batch++
	o.Passes.cause = cause
}

// waitForNewLeader suspends a pass of the process, until another replica has led and become quiet. It reports whether the process still
// runs. It is called on the goroutine of the pass. The caller holds the lock, and waitForNewLeader releases it while it waits.
func (o *Operator) waitForNewLeader(old *Process) bool {
	resume := make(chan struct{})
	o.Waiting = &WaitingPass{Process: old, Resume: resume}
	o.world.Mu.Unlock()
	<-resume
	o.world.Mu.Lock()
	return !old.Dead
}
