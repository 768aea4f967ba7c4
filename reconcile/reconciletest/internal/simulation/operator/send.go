package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// read does and records a read of the cache. No fault is injected: such a read does not use the network.
func (p *Process) read(ctx context.Context, c *request.Call, do func() error) error {
	if p.isDead() {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Err = do()
	p.operator.world.Mu.Lock()
	defer p.operator.world.Mu.Unlock()
	p.operator.record(p, c)
	return c.Err
}

// send records a request, an effect or a query, and injects the fault planned for it. do performs the request; lost is
// true if its answer does not reach the caller.
func (p *Process) send(ctx context.Context, c *request.Call, do func(lost bool) error) error {
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
	c.Owned = to.world.Counter.Created[request.ObjectID{Kind: c.Kind, Name: c.Object}]
	o := &outgoing{operator: to, process: p, call: c, do: do}
	o.reachAPI(ctx)
	c.Before = to.moment()
	to.record(p, c)
	o.noteObject()
	if o.isInOutage() {
		return o.answer(errOutage)
	}
	if fault := to.inject(p, c); fault != "" {
		return handlers[fault](o)
	}
	return o.answer(o.carryOut(false))
}

// waitForLatency lets the time pass that a request takes, unless its context ends before.
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

// inject notes that the run has reached a request, and returns the kind of the fault to inject there, "" for none. The
// caller holds the lock.
func (o *Operator) inject(p *Process, c *request.Call) kinds.Fault {
	object := request.ObjectID{Kind: c.Kind, Name: c.Object}
	planned, at := o.world.Plan.Reach(plan.Point{Call: c, Object: object, Name: o.world.References.NameAt(c.String(), object), HasNext: o.Actions.HasNext(), Watched: p.Mgr.Cache().Watches(c.Kind)})
	if planned == "" || !plan.RuleOf(planned).AppliesTo(&at) {
		return ""
	}
	if planned == kinds.LeaderChange && (c.Pass == 0 || p != o.Leader) {
		return "" // outside of a pass there is none to finish; and an old leader cannot lose the lead again
	}
	o.world.Plan.NoteInjected(planned, at)
	c.Fault = string(planned)
	return planned
}

// outgoing is a request, an effect or a query that is about to be sent. It has one handler for each kind of fault, which
// returns the answer that the operator gets. Handlers are called with the run's lock held; they may release it while they wait.
type outgoing struct {
	operator *Operator
	process  *Process
	call     *request.Call
	do       func(lost bool) error
	outside  *outside.Call // the call of an API of package fakeapi; nil: it is another request
}

// handlers has the handler of each kind of fault that is injected at requests. For changes of objects see
// observe.go, and for what happens in batches see batch.go.
var handlers = map[kinds.Fault]func(o *outgoing) error{
	kinds.CrashBefore:         (*outgoing).crashBefore,
	kinds.CrashAfter:          (*outgoing).crashAfter,
	kinds.CrashDowntime:       (*outgoing).crashDowntime,
	kinds.CrashUnseen:         (*outgoing).crashUnseen,
	kinds.CrashDowntimeUnseen: (*outgoing).crashDowntimeUnseen,
	kinds.ConcurrentAction:    (*outgoing).concurrentAction,
	kinds.Timeout:             (*outgoing).timeout,
	kinds.TimeoutBefore:       (*outgoing).timeoutBefore,
	kinds.Conflict:            (*outgoing).conflict,
	kinds.TooManyRequests:     (*outgoing).tooManyRequests,
	kinds.InternalError:       (*outgoing).internalError,
	kinds.ConnectionRefused:   (*outgoing).connectionRefused,
	kinds.AlreadyExists:       (*outgoing).alreadyExists,
	kinds.NotFound:            (*outgoing).notFound,
	kinds.LeaderChange:        (*outgoing).leaderChange,
	kinds.StaleAnswer:         (*outgoing).staleAnswer,
	kinds.Outage:              (*outgoing).beginOutage,
}

// carryOut performs the request.
func (o *outgoing) carryOut(lost bool) error {
	err := o.operator.world.CarryOut(o.call, lost, o.do)
	o.call.After = o.operator.moment()
	o.failIfForeign()
	return err
}

// moment returns what decides how the run goes on. The caller holds the lock.
func (o *Operator) moment() request.Moment {
	now := o.world.Moment()
	now.Actions = o.Actions.Begun()
	return now
}

// answer records the answer that the operator gets, and returns it.
func (o *outgoing) answer(err error) error {
	o.call.Err = err
	return err
}

// die ends the process, which gets errDead. The log and the trace show the result of the request itself.
func (o *outgoing) die(result error) error {
	o.call.Err = result
	o.process.Die()
	return errDead
}

func (o *outgoing) crashBefore() error { return o.die(errDead) }

func (o *outgoing) crashAfter() error { return o.die(o.carryOut(true)) }

func (o *outgoing) crashDowntime() error {
	result := o.carryOut(true)
	o.operator.down = true
	return o.die(result)
}

func (o *outgoing) crashUnseen() error {
	before := o.operator.world.Server.Revision()
	result := o.carryOut(true)
	if o.process.Mgr.Cache().Watches(o.call.Kind) {
		o.operator.nextPast = &past{Past: fakemanager.Past{GVK: o.call.Kind, Revision: before}}
	}
	return o.die(result)
}

func (o *outgoing) crashDowntimeUnseen() error {
	err := o.crashUnseen()
	o.operator.down = true
	return err
}

func (o *outgoing) concurrentAction() error {
	if !o.operator.Actions.DoNext() {
		o.call.Fault = "" // the action was not possible yet, so the trace shows no fault
	}
	return o.answer(o.carryOut(false))
}

func (o *outgoing) timeout() error {
	if err := o.carryOut(true); err != nil {
		return o.answer(err)
	}
	return o.answer(o.networkError(context.DeadlineExceeded))
}

func (o *outgoing) timeoutBefore() error {
	return o.answer(o.networkError(context.DeadlineExceeded))
}

func (o *outgoing) conflict() error {
	o.operator.world.Others.Write(o.call)
	return o.answer(o.carryOut(false))
}

func (o *outgoing) tooManyRequests() error {
	if o.call.HTTP || o.call.API {
		return o.answer(outside.Refusal{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	}
	return o.answer(apierrors.NewTooManyRequests("the server has asked for the client to wait", 1))
}

func (o *outgoing) internalError() error {
	switch {
	case o.call.HTTP:
		return o.answer(outside.Refusal{Status: http.StatusServiceUnavailable})
	case o.call.API:
		return o.answer(outside.Refusal{Status: http.StatusInternalServerError})
	}
	return o.answer(apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed")))
}

func (o *outgoing) connectionRefused() error {
	return o.answer(o.networkError(syscall.ECONNREFUSED))
}

// alreadyExists performs a creation and answers as to the client's second attempt. A creation with a generated name is
// not performed, since a second attempt would get another name: it is answered as if the name were taken.
func (o *outgoing) alreadyExists() error {
	if !strings.HasSuffix(o.call.Object.Name, "*") {
		if err := o.carryOut(true); err != nil {
			return o.answer(err)
		}
	}
	resource := schema.GroupResource{Group: o.call.Kind.Group, Resource: strings.ToLower(o.call.Kind.Kind) + "s"}
	return o.answer(apierrors.NewAlreadyExists(resource, o.call.Object.Name))
}

func (o *outgoing) notFound() error {
	o.operator.world.Others.Remove(o.call)
	return o.answer(o.carryOut(false))
}

// leaderChange waits until another replica has led and become quiet. Then the old leader continues, unless it has died.
func (o *outgoing) leaderChange() error {
	if !o.operator.waitForNewLeader(o.process) {
		return o.answer(errDead)
	}
	return o.answer(o.carryOut(false))
}

// networkError returns the network error that the caller of the request sees.
func (o *outgoing) networkError(err error) error {
	c := o.call
	if c.External != "" {
		return fmt.Errorf("%s: %w", c.External, err)
	}
	return &url.Error{Op: strings.ToUpper(c.Verb[:1]) + c.Verb[1:], URL: "https://api.example.com/" + strings.ToLower(c.Kind.Kind), Err: err}
}

// refuse returns the answer to a request of a dead process. It ends a goroutine that retries for ever.
func (p *Process) refuse() error {
	if p.refused.Add(1) > maxRequests {
		runtime.Goexit()
	}
	return errDead
}

// refuseIfDead returns the answer to a request of a dead process, nil if the process runs.
func (p *Process) refuseIfDead() error {
	if p.isDead() {
		return p.refuse()
	}
	return nil
}

// record adds a request to the log and the trace. The caller holds the lock.
func (o *Operator) record(p *Process, c *request.Call) {
	c.Process, c.Probe, c.Past = p.number, o.world.Probing, p.Mgr.Cache().IsInThePast()
	o.world.Rights.AddRequest(c)
	if p.Pass != nil {
		c.Pass = p.Pass.number
		o.limitRequests(p, c)
	}
	o.world.Log.Add(c)
	o.world.Trace.Add(trace.Row{Pass: c.Pass, Call: c})
}

// maxRequests is how many requests a pass may send, including reads of the cache, and how many of a dead process are
// refused before its goroutines are ended.
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
