package operator

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// read carries out and records a read of the cache. No fault is injected, since such a read does not use the network.
func (p *Process) read(ctx context.Context, c *request.Call, do func() error) error {
	if memoryserver.IsReview(ctx) {
		return do() // a webhook reads: another replica may serve it
	}
	if p.isDead() {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Err = do()
	p.operator.world.Mu.Lock()
	defer p.operator.world.Mu.Unlock()
	c.Kind = p.operator.world.Server.Canonical(c.Kind)
	p.operator.record(p, c)
	return c.Err
}

// send records a request, an effect or a query, and injects the planned fault. do carries out the request. lost is true if the answer does
// not reach the caller.
func (p *Process) send(ctx context.Context, c *request.Call, do func(lost bool) error) error {
	if memoryserver.IsReview(ctx) {
		return do(false) // the request for which the webhook is called holds the lock
	}
	to := p.operator
	to.waitForLatency(ctx)
	to.world.Mu.Lock()
	defer to.world.Mu.Unlock()
	if p.Dead {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if passcontext.IsWithoutFaults(ctx) {
		return do(false)
	}
	o := &outgoing{operator: to, process: p, call: c, do: do}
	o.noteWebhooks()
	c.Owned = to.world.Counter.Created[request.ObjectID{Kind: c.Kind, Name: c.Object}]
	o.reachAPI(ctx)
	c.Before = to.moment()
	to.record(p, c)
	o.noteObject()
	if o.isInOutage() {
		return o.answer(errOutage)
	}
	if fault := to.inject(p, c); fault != "" {
		return atRequests[fault](o)
	}
	return o.answer(o.carryOut(false))
}

// waitForLatency waits for the time that a request takes by the scenario, or until its context ends.
func (o *Operator) waitForLatency(ctx context.Context) {
	if o.world.Latency <= 0 || passcontext.IsWithoutFaults(ctx) {
		return
	}
	timer := time.NewTimer(o.world.Latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// inject notes that the run has reached a request. It returns the kind of the fault to inject there, "" for none. The caller holds the
// lock.
func (o *Operator) inject(p *Process, c *request.Call) kinds.Fault {
	object := request.ObjectID{Kind: c.Kind, Name: c.Object}
	planned, at := o.world.Plan.Reach(plan.Point{Call: c, Object: object, Name: o.world.References.NameAt(c.String(), object), HasNext: o.Actions.HasNext(), Watched: p.Mgr.Cache().Kinds.Watches(c.Kind)})
	if planned == "" || !at.Applies(kinds.RuleOf(planned)) {
		return ""
	}
	if planned == kinds.LeaderChange && (c.Pass == 0 || p != o.Leader) {
		return "" // outside of a pass nothing can be suspended, and an old leader cannot lose the lead again
	}
	o.world.Plan.NoteInjected(planned, at)
	c.Fault = string(planned)
	return planned
}

// refuse returns the answer to a request of a dead process. If the process has sent too many requests since its death, refuse ends the
// goroutine.
func (p *Process) refuse() error {
	if p.refused.Add(1) > maxRequests {
		runtime.Goexit()
	}
	return errDead
}

// refuseIfDead returns the answer to a request of a dead process. If the process runs, it returns nil.
func (p *Process) refuseIfDead() error {
	if p.isDead() {
		return p.refuse()
	}
	return nil
}

// record adds a request to the log and the trace. The caller holds the lock.
func (o *Operator) record(p *Process, c *request.Call) {
	c.Process, c.Probe, c.Past = p.number, o.world.Probing, p.Mgr.Cache().Kinds.IsInThePast()
	o.world.Rights.AddRequest(c)
	if p.Pass != nil {
		c.Pass = p.Pass.number
		o.limitRequests(p, c)
	}
	o.world.Log.Add(c)
	o.world.Trace.Add(trace.Row{Pass: c.Pass, Call: c})
}

// maxRequests is the largest number of requests of a pass, including reads of the cache. It is also the number of requests of a dead
// process that are refused before its goroutines are ended.
const maxRequests = 10_000

// limitRequests ends a pass that sends requests for ever. It ends the goroutine, since the pass may ignore errors.
func (o *Operator) limitRequests(p *Process, c *request.Call) {
	if p.Pass.requests++; p.Pass.requests <= maxRequests {
		return
	}
	o.world.Failures.AddLocked(fmt.Errorf("%s does not end: it has sent %d requests, the last one %s", p.Pass, maxRequests, c))
	p.Die()
	runtime.Goexit()
}
