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

	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// read records a read of the cache. No fault strikes it: it does not use the network.
func (p *Process) read(ctx context.Context, c *call, do func() error) error {
	if p.isDead() {
		return p.refuse()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Behind = p.manager.Cache().Behind(c.Kind)
	c.Err = do()
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	p.run.record(p, c)
	return c.Err
}

// send records a request or an effect, and lets the fault strike that is planned for it. Do carries it out; it is
// called with lost if nobody gets the answer.
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
	c.owned = run.operations.created[objectID{c.Kind, c.Object}]
	run.record(p, c)
	d := &delivery{run: run, process: p, call: c, do: do}
	if fault := run.strike(p, c); fault != "" {
		return ruleOf(fault).strike(d)
	}
	return d.answer(d.carryOut(false))
}

// strike notes that a request has reached its point, and returns the fault that strikes there, "" for none. The
// caller holds the lock.
func (r *Run) strike(p *Process, c *call) FaultKind {
	planned, at := r.plan.reach(point{call: c, name: c.String(), hasNext: r.script.hasNext(r.scenario.Actions), watched: p.manager.Cache().Watches(c.Kind)})
	if planned == "" || !ruleOf(planned).canStrike(&at) {
		return ""
	}
	if planned == LeaderChange && (c.Pass == 0 || p != r.processes.leader) {
		return "" // there is no pass to finish, or the process does not lead any more
	}
	r.plan.strike(planned, at)
	c.Fault = string(planned)
	return planned
}

// delivery is a request on its way to the server, or an effect. It has one handler for each kind of fault, which
// returns what the operator gets as the answer. Handlers are called under the run's lock.
type delivery struct {
	run     *Run
	process *Process
	call    *call
	do      func(lost bool) error
}

// carryOut does what the request asks for.
func (d *delivery) carryOut(lost bool) error { return d.run.carryOut(d.call, lost, d.do) }

// answer records what the operator gets, and returns it.
func (d *delivery) answer(err error) error {
	d.call.Err = err
	return err
}

// die ends the process. The trace shows the request's own result.
func (d *delivery) die(result error) error {
	d.call.Err = result
	d.process.die()
	return errDead
}

func (d *delivery) crashBefore() error { return d.die(errDead) }

func (d *delivery) crashAfter() error { return d.die(d.carryOut(true)) }

func (d *delivery) crashDowntime() error {
	result := d.carryOut(true)
	d.run.processes.down = true
	return d.die(result)
}

func (d *delivery) crashUnseen() error {
	before := d.run.server.Revision()
	result := d.carryOut(true)
	if d.process.manager.Cache().Watches(d.call.Kind) {
		d.run.travel.next = &past{Past: fakemanager.Past{GVK: d.call.Kind, Revision: before}}
	}
	return d.die(result)
}

func (d *delivery) crashDowntimeUnseen() error {
	err := d.crashUnseen()
	d.run.processes.down = true
	return err
}

func (d *delivery) concurrentAction() error {
	if !d.run.doNextAction() {
		d.call.Fault = ""
	}
	return d.answer(d.carryOut(false))
}

func (d *delivery) timeout() error {
	if err := d.carryOut(true); err != nil {
		return d.answer(err)
	}
	return d.answer(d.networkError(context.DeadlineExceeded))
}

func (d *delivery) conflict() error {
	d.run.touch(d.call)
	return d.answer(d.carryOut(false))
}

func (d *delivery) tooManyRequests() error {
	if d.call.http {
		return d.answer(httpError(http.StatusTooManyRequests))
	}
	return d.answer(apierrors.NewTooManyRequests("the server has asked for the client to wait", 1))
}

func (d *delivery) internalError() error {
	if d.call.http {
		return d.answer(httpError(http.StatusServiceUnavailable))
	}
	return d.answer(apierrors.NewInternalError(fmt.Errorf("etcdserver: leader changed")))
}

func (d *delivery) connectionRefused() error {
	return d.answer(d.networkError(syscall.ECONNREFUSED))
}

// alreadyExists carries out a creation, unless the server would generate another name at the second attempt.
func (d *delivery) alreadyExists() error {
	if !strings.HasSuffix(d.call.Object.Name, "*") {
		if err := d.carryOut(true); err != nil {
			return d.answer(err)
		}
	}
	resource := schema.GroupResource{Group: d.call.Kind.Group, Resource: strings.ToLower(d.call.Kind.Kind) + "s"}
	return d.answer(apierrors.NewAlreadyExists(resource, d.call.Object.Name))
}

func (d *delivery) notFound() error {
	d.run.remove(d.call)
	return d.answer(d.carryOut(false))
}

// leaderChange lets another replica lead until it is quiet. Then the old leader goes on, unless it has died.
func (d *delivery) leaderChange() error {
	if !d.run.waitForNewLeader(d.process) {
		return d.answer(errDead)
	}
	return d.answer(d.carryOut(false))
}

// networkError is what an HTTP client returns.
func (d *delivery) networkError(err error) error {
	c := d.call
	if c.External != "" {
		return fmt.Errorf("%s: %w", c.External, err)
	}
	return &url.Error{Op: strings.ToUpper(c.Verb[:1]) + c.Verb[1:], URL: "https://api.example.com/" + strings.ToLower(c.Kind.Kind), Err: err}
}

// refuse answers a process that is dead. A goroutine of it that tries for ever ends here.
func (p *Process) refuse() error {
	if p.refused.Add(1) > maxRequests {
		runtime.Goexit()
	}
	return errDead
}

// record puts a request into the log and the trace. The caller holds the lock.
func (r *Run) record(p *Process, c *call) {
	c.Process, c.probe = p.number, r.probing
	if p.pass != nil {
		c.Pass = p.pass.number
		r.limitRequests(p, c)
	}
	r.log.add(c)
	r.trace.add(row{pass: c.Pass, call: c})
}

// maxRequests is how many requests a pass may send, reads of the cache among them.
const maxRequests = 10_000

// limitRequests ends a pass that sends requests for ever. The pass may ignore errors, so its goroutine ends here.
func (r *Run) limitRequests(p *Process, c *call) {
	if p.pass.requests++; p.pass.requests <= maxRequests {
		return
	}
	r.failLocked(fmt.Errorf("%s does not end: it has sent %d requests, the last one %s", p.pass, maxRequests, c))
	p.die()
	runtime.Goexit()
}
