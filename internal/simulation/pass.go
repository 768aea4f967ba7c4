package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// passes are the passes of a run. The run's lock guards them.
type passes struct {
	begun   int                            // how many so far
	batch   int                            // the number of the current batch of requests; see fakemanager.Options
	cause   string                         // why requests are enqueued now
	outcome map[fakemanager.Target]outcome // how the last pass of each object ended
	before  map[fakemanager.Target]outcome // the same before checkRest
}

func newPasses() passes { return passes{outcome: map[fakemanager.Target]outcome{}} }

// keepOutcomes notes how the last passes ended before checkRest.
func (r *Run) keepOutcomes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes.before = maps.Clone(r.passes.outcome)
}

// outcome is how a pass ended.
type outcome struct {
	pass   int
	result ctrl.Result
	err    error
}

// pass is a running pass.
type pass struct {
	number   int
	target   fakemanager.Target
	requests int // how many it has sent, including reads of the cache
}

// String returns the pass's number and object.
func (p *pass) String() string {
	return fmt.Sprintf("pass %d over %s", p.number, describeTarget(p.target))
}

func describeTarget(t fakemanager.Target) string {
	return t.Controller + " " + nameOf(t.Request.NamespacedName)
}

// waitingPass is a pass of an old leader, suspended until the new leader is quiet.
type waitingPass struct {
	process *Process
	resume  chan struct{}
}

// runPass calls a reconciler and records the call. It returns an error if the reconciler panics.
func (p *Process) runPass(target fakemanager.Target, cause string, reconcile func() (ctrl.Result, error)) (result ctrl.Result, err error) {
	pass := p.run.beginPass(p, target, cause)
	defer func() {
		if r := recover(); r != nil {
			err = panicError(pass.String(), r)
			p.run.panicked(p, err)
		}
		p.run.endPass(p, pass, result, err)
	}()
	return reconcile()
}

func (r *Run) beginPass(p *Process, target fakemanager.Target, cause string) *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes.begun++
	p.pass = &pass{number: r.passes.begun, target: target}
	r.trace.add(row{pass: p.pass.number, what: passPrefix + describeTarget(target), answer: cause})
	return p.pass
}

func (r *Run) endPass(p *Process, ended *pass, result ctrl.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.pass = nil
	r.passes.outcome[ended.target] = outcome{ended.number, result, err}
	if p.dead {
		return
	}
	switch {
	case err != nil:
		r.trace.add(row{pass: ended.number, what: "  the pass ends", answer: "error: " + err.Error()})
		if result.RequeueAfter > 0 {
			r.failLocked(finding{kinds.BreaksConvention, fmt.Errorf("pass %d returns RequeueAfter %s beside an error, and controller-runtime ignores the delay: %w", ended.number, result.RequeueAfter, err)})
		}
	case result.RequeueAfter > 0:
		r.trace.add(row{pass: ended.number, what: "  the pass ends", answer: "again after " + result.RequeueAfter.String()})
	}
}

func (r *Run) panicked(p *Process, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.dead { // a dead process may panic, since all its requests are refused
		r.failLocked(err)
	}
}

// cause returns the current batch, and why requests are enqueued now.
func (r *Run) cause() (batch int, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passes.batch, r.passes.cause
}

// setCause sets why requests are enqueued from now on, and begins a new batch.
func (r *Run) setCause(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes.batch++
	r.passes.cause = cause
}

// finishPass begins a pass and waits until it has ended. While the pass waits for something, events are delivered, the
// rest of the cluster works, and time passes.
func (r *Run) finishPass(work *fakemanager.Work) {
	work.Begin()
	p := r.processes.leader
	step, waited := time.Millisecond, time.Duration(0)
	for {
		r.observe()
		if r.changeLeader() {
			continue
		}
		r.mu.Lock()
		ended := p.pass == nil || p.dead
		r.mu.Unlock()
		if ended || r.failure() != nil {
			return
		}
		if p == r.processes.leader && (r.deliver() || r.stepCluster()) {
			continue
		}
		if waited > maxFreeze && p.manager.Cache().Thaw() {
			continue
		}
		if waited > maxPassTime {
			r.fail(fmt.Errorf("pass over %s %s has not ended after %s of virtual time", work.Target.Controller, work.Target.Request, maxPassTime))
			return
		}
		time.Sleep(step)
		waited += step
		step *= 2
	}
}

// waitForNewLeader suspends a pass of the process until another replica has led and become quiet. It reports whether the
// process still runs. It is called on the goroutine of the pass with the lock held, which it releases while it waits.
func (r *Run) waitForNewLeader(old *Process) bool {
	resume := make(chan struct{})
	r.processes.waiting = &waitingPass{process: old, resume: resume}
	r.mu.Unlock()
	<-resume
	r.mu.Lock()
	return !old.dead
}

// changeLeader starts another replica and lets it become quiet. Then the old leader finishes its pass and ends. It reports
// false if no pass waits for a new leader.
func (r *Run) changeLeader() bool {
	r.mu.Lock()
	old := r.processes.waiting
	r.processes.waiting = nil
	r.mu.Unlock()
	if old == nil {
		return false
	}
	r.startProcess()
	r.settle()
	r.trace.add(row{what: "the old leader continues its pass"})
	close(old.resume)
	r.observe()
	for waited := time.Millisecond; waited < maxPassTime; waited *= 2 {
		r.mu.Lock()
		ended := old.process.pass == nil
		r.mu.Unlock()
		if ended {
			break
		}
		time.Sleep(waited)
		r.observe()
	}
	r.mu.Lock()
	old.process.die()
	r.mu.Unlock()
	r.trace.add(row{what: "the old leader ends"})
	return true
}

// checkOutcomes returns an error if the last pass over an object failed: then the operator is quiet only because it waits
// for the next attempt. A terminal error is allowed, since it is not retried.
func (r *Run) checkOutcomes() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, target := range slices.SortedFunc(maps.Keys(r.passes.outcome), fakemanager.Target.Compare) {
		if problem := r.problemOf(r.passes.outcome[target]); problem != "" {
			return finding{kinds.DoesNotRest, fmt.Errorf("after the last action passes over %s still end %s\n"+
				"If that is what the last action is meant to cause, add an action that repairs it or deletes the object", describeTarget(target), problem)}
		}
	}
	return nil
}

// heldError returns an error if passes over an object fail while another controller holds it. The caller holds the lock.
func (r *Run) heldError(h *heldObject) error {
	for _, target := range slices.SortedFunc(maps.Keys(r.passes.outcome), fakemanager.Target.Compare) {
		if target.Request.NamespacedName != h.id.name {
			continue
		}
		if problem := r.problemOf(r.passes.outcome[target]); problem != "" {
			return fmt.Errorf("%s is being deleted, and only the finalizer of another controller is left; passes over %s end %s\n"+
				"An object that is being deleted and no longer has your finalizer needs nothing more", h.id, describeTarget(target), problem)
		}
	}
	return nil
}

// problemOf describes how a pass failed. It returns "" if the pass succeeded.
func (r *Run) problemOf(o outcome) string {
	switch {
	case errors.Is(o.err, ctrlreconcile.TerminalError(nil)):
	case o.err != nil:
		return "in an error: " + o.err.Error()
	case o.result.RequeueAfter > 0:
		for _, request := range r.log.all() {
			if request.Pass == o.pass && request.isRefused() {
				return fmt.Sprintf("with a delay of %s, since %s is refused: %s", o.result.RequeueAfter, request.String(), request.Err)
			}
		}
	case o.result.Requeue: //nolint:staticcheck // reconcilers still use it
		return "by asking for another one (Requeue)"
	}
	return ""
}
