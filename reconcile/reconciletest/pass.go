package reconciletest

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
)

// pass is a pass that runs.
type pass struct {
	number     int
	controller *controller
	request    ctrl.Request
	requests   int // that it has sent, and reads of the cache
}

// deposed is an old leader that waits for its turn to finish.
type deposed struct {
	process *Process
	resume  chan struct{}
}

func (r *run) beginPass(c *controller, request ctrl.Request, cause string) *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pass++
	p := &pass{number: r.pass, controller: c, request: request}
	c.process.pass = p
	r.trace.add(row{pass: p.number, process: c.process.number, what: "pass over " + c.name + " " + nameOf(request.NamespacedName), answer: cause})
	return p
}

func (r *run) endPass(p *Process, ended *pass, result ctrl.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.pass = nil
	r.ended[over{ended.controller.name, ended.request}] = outcome{ended.number, result, err}
	says := ""
	switch {
	case p.dead:
		return
	case err != nil && result.RequeueAfter > 0:
		says = "error: " + err.Error()
		r.failLocked(fmt.Errorf("pass %d returns RequeueAfter %s beside an error, and controller-runtime ignores the delay: %w", ended.number, result.RequeueAfter, err))
	case err != nil:
		says = "error: " + err.Error()
	case result.RequeueAfter > 0:
		says = "again after " + result.RequeueAfter.String()
	default:
		return
	}
	r.trace.add(row{pass: ended.number, what: "  the pass ends", answer: says})
}

func (r *run) panicked(p *Process, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.dead { // one that is refused everything may be beside itself
		r.failLocked(err)
	}
}

// cause says why passes are asked for at this moment.
func (r *run) cause() (batch int, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch, r.causing
}

func (r *run) setCause(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch++
	r.causing = cause
}

// depose lets another replica lead until it is quiet, and reports whether the old leader may go on.
// The caller is in the old leader's pass and holds the lock.
func (r *run) depose(p *Process) bool {
	r.deposed = &deposed{process: p, resume: make(chan struct{})}
	resume := r.deposed.resume
	r.mu.Unlock()
	<-resume
	r.mu.Lock()
	return !p.dead
}
