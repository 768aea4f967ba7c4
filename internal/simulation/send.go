package simulation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// read does and records a read of the cache. No fault is injected: such a read does not use the network.
func (p *Process) read(ctx context.Context, c *call, do func() error) error {
	if p.isDead() {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Err = do()
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	p.run.record(p, c)
	return c.Err
}

// send records a request, an effect or a query, and injects the fault planned for it. do performs the request; lost is
// true if its answer does not reach the caller.
func (p *Process) send(ctx context.Context, c *call, do func(lost bool) error) error {
	run := p.run
	run.mu.Lock()
	defer run.mu.Unlock()
	if p.dead {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if passcontext.IsWithoutFaults(ctx) {
		return do(false)
	}
	c.owned = run.operations.created[objectID{c.Kind, c.Object}]
	run.record(p, c)
	o := &outgoing{run: run, process: p, call: c, do: do}
	if fault := run.inject(p, c); fault != "" {
		return ruleOf(fault).apply(o)
	}
	return o.answer(o.carryOut(false))
}

// inject notes that the run has reached a request, and returns the kind of the fault to inject there, "" for none. The
// caller holds the lock.
func (r *Run) inject(p *Process, c *call) kinds.Fault {
	object := objectID{c.Kind, c.Object}
	planned, at := r.plan.reach(point{call: c, object: object, name: r.references.nameAt(c.String(), object), hasNext: r.script.hasNext(r.scenario.Actions), watched: p.manager.Cache().Watches(c.Kind)})
	if planned == "" || !ruleOf(planned).appliesTo(&at) {
		return ""
	}
	if planned == kinds.LeaderChange && (c.Pass == 0 || p != r.processes.leader) {
		return "" // outside of a pass there is none to finish; and an old leader cannot lose the lead again
	}
	r.plan.noteInjected(planned, at)
	c.Fault = string(planned)
	return planned
}

// outgoing is a request, an effect or a query that is about to be sent. It has one handler for each kind of fault, which
// returns the answer that the operator gets. Handlers are called with run.mu held; they may release it while they wait.
type outgoing struct {
	run     *Run
	process *Process
	call    *call
	do      func(lost bool) error
}

// carryOut performs the request.
func (o *outgoing) carryOut(lost bool) error { return o.run.carryOut(o.call, lost, o.do) }

// answer records the answer that the operator gets, and returns it.
func (o *outgoing) answer(err error) error {
	o.call.Err = err
	return err
}

// die ends the process, which gets errDead. The log and the trace show the result of the request itself.
func (o *outgoing) die(result error) error {
	o.call.Err = result
	o.process.die()
	return errDead
}

func (o *outgoing) crashBefore() error { return o.die(errDead) }

func (o *outgoing) crashAfter() error { return o.die(o.carryOut(true)) }

func (o *outgoing) crashDowntime() error {
	result := o.carryOut(true)
	o.run.processes.down = true
	return o.die(result)
}

func (o *outgoing) crashUnseen() error {
	before := o.run.server.Revision()
	result := o.carryOut(true)
	if o.process.manager.Cache().Watches(o.call.Kind) {
		o.run.timeTravel.next = &past{Past: fakemanager.Past{GVK: o.call.Kind, Revision: before}}
	}
	return o.die(result)
}

func (o *outgoing) crashDowntimeUnseen() error {
	err := o.crashUnseen()
	o.run.processes.down = true
	return err
}

func (o *outgoing) concurrentAction() error {
	if !o.run.doNextAction() {
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

func (o *outgoing) conflict() error {
	o.run.writeAsOther(o.call)
	return o.answer(o.carryOut(false))
}

func (o *outgoing) tooManyRequests() error {
	if o.call.http {
		return o.answer(httpError(http.StatusTooManyRequests))
	}
	return o.answer(apierrors.NewTooManyRequests("the server has asked for the client to wait", 1))
}

func (o *outgoing) internalError() error {
	if o.call.http {
		return o.answer(httpError(http.StatusServiceUnavailable))
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
	o.run.deleteAsOther(o.call)
	return o.answer(o.carryOut(false))
}

// leaderChange waits until another replica has led and become quiet. Then the old leader continues, unless it has died.
func (o *outgoing) leaderChange() error {
	if !o.run.waitForNewLeader(o.process) {
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

// record adds a request to the log and the trace. The caller holds the lock.
func (r *Run) record(p *Process, c *call) {
	c.Process, c.probe, c.past = p.number, r.probing, p.manager.Cache().IsInThePast()
	r.rights.addRequest(c)
	if p.pass != nil {
		c.Pass = p.pass.number
		r.limitRequests(p, c)
	}
	r.log.add(c)
	r.trace.add(row{pass: c.Pass, call: c})
}

// maxRequests is how many requests a pass may send, including reads of the cache, and how many of a dead process are
// refused before its goroutines are ended.
const maxRequests = 10_000

// limitRequests ends a pass that sends requests for ever. It ends the goroutine, since the pass may ignore errors.
func (r *Run) limitRequests(p *Process, c *call) {
	if p.pass.requests++; p.pass.requests <= maxRequests {
		return
	}
	r.failLocked(fmt.Errorf("%s does not end: it has sent %d requests, the last one %s", p.pass, maxRequests, c))
	p.die()
	runtime.Goexit()
}
