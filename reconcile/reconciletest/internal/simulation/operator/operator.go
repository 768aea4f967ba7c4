// Package operator has the operator in a run. An [Operator] starts its processes, one after another. A [Process] (process.go) has a
// manager of package fakemanager, a client (client.go), an event recorder and a logger (recorder.go).
//
// send.go sends each request. outgoing.go has the type of a request that is about to be sent. api.go has the code that only calls of an API
// outside of the cluster need. observe.go passes the changes on the server to the cache. fault.go has what each kind of fault does to a
// request or to the cache. pass.go runs the passes, outcome.go has how they ended, verdict.go whether they succeed, and batch.go sends
// several requests at once.
package operator

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// Operator is the operator in a run: its processes, one after another, and their passes. The run's lock guards it. Only the
// goroutine that drives the run replaces the leader, so that goroutine reads the leader without the lock.
type Operator struct {
	world   *world.World
	setUp   func(p *Process) error // the scenario's Start
	Actions NextAction

	Leader      *Process
	started     int          // how many processes have started so far
	ended       int          // how many processes have ended because Start or their manager failed
	Died        bool         // at least one process has died and was replaced
	down        bool         // the next process starts only after the user's next action
	Waiting     *WaitingPass // the pass that waits for a leader change; nil: none does
	plannedPast *past        // the old state that the process shall see that starts when the operator has nothing left to do but wait
	nextPast    *past        // the old state that the process sees that starts next
	nextUnseen  bool         // the user's next action is to happen before the cache shows a deletion
	Passes      Passes
}

// past is an earlier state of a kind. The cache of a new process shows it at first.
type past struct {
	fakemanager.Past
	change string // describes the first change that the cache does not show
}

// NextAction is the next action of the user, which a fault can do in the middle of a pass. Callers hold the run's lock.
type NextAction interface {
	Begun() int    // how many actions have begun
	HasNext() bool // the user has an action left, and it is not a Wait
	DoNext() bool  // does the next action, and reports whether the action succeeded
}

// New returns an operator without a process. setUp is the Start of the scenario.
func New(w *world.World, setUp func(p *Process) error) *Operator {
	return &Operator{world: w, setUp: setUp, Passes: newPasses()}
}

// Limits and delays of processes.
const (
	restartTime     = 2 * time.Second // the time from the death of a process to the start of the next one
	MaxClusterSteps = 100             // the largest number of steps of the rest of the cluster between two processes
)

// StartProcess starts a process and makes it the leader.
func (o *Operator) StartProcess() {
	o.world.Mu.Lock()
	o.started++
	p := newProcess(o, o.started)
	if next := o.nextPast; next != nil {
		p.Mgr.Cache().Kinds.BeginInThePast(next.Past, o.world.History.Changes)
		o.nextPast, o.world.Counter.SawPast = nil, true
	}
	o.Leader = p
	o.world.Mu.Unlock()
	if p.number > 1 {
		o.world.Trace.Add(trace.Row{What: fmt.Sprintf("process %d starts", p.number)})
	}
	o.SetCause("start")
	if err := p.start(); err != nil {
		o.endedItself(p, err)
	}
}

// maxEnds is the number of processes in a run that may end because Start or their manager failed. The run then fails.
const maxEnds = 5

// endedItself notes that a process has ended because Start or its manager failed. If a fault may be the reason, another process starts, as
// a kubelet restarts a container. If the run has no fault, or if processes end again and again, the run fails.
func (o *Operator) endedItself(p *Process, err error) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if p.Dead {
		return
	}
	switch o.ended++; {
	case len(o.world.Plan.Injected) == 0:
		o.world.Failures.AddLocked(err)
		return
	case o.ended >= maxEnds:
		o.world.Failures.AddLocked(fmt.Errorf("it does not come up again: %d processes have ended, the last one by %w", o.ended, err))
		return
	}
	o.world.Trace.Add(trace.Row{What: fmt.Sprintf("process %d ends", p.number), Answer: "error: " + err.Error()})
	p.Die()
}

// ReplaceDeadProcess starts the first process. Later it starts a new one if the process has died, after the rest of the cluster has worked.
// It returns false if a process runs, or if none may start before the user's next action.
func (o *Operator) ReplaceDeadProcess() bool {
	o.world.Mu.Lock()
	old := o.Leader
	if old != nil && (!old.Dead || o.down) {
		o.world.Mu.Unlock()
		return false
	}
	if old != nil {
		o.Died = true
	}
	o.world.Mu.Unlock()
	if old != nil {
		time.Sleep(restartTime)
		for range MaxClusterSteps {
			if !o.world.StepCluster() {
				break
			}
		}
	}
	o.StartProcess()
	return true
}

// IsDown reports whether no process runs, and none may start before the user's next action.
func (o *Operator) IsDown() bool {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	return o.down
}

// EndDowntime allows the next process to start.
func (o *Operator) EndDowntime() {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	o.down = false
}

// End ends the leading process.
func (o *Operator) End() {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if o.Leader != nil {
		o.Leader.end()
	}
}

// Hides reports whether the options of the operator's cache leave out an object.
func (o *Operator) Hides(obj client.Object) bool {
	return o.Leader.Mgr.Cache().Kinds.Hides(obj)
}
