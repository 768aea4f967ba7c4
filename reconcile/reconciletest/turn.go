package reconciletest

import (
	"fmt"
	"time"
)

// reconcile runs one pass to its end. While it waits for something events arrive and time passes.
func (r *run) reconcile(c *controller, i *item) {
	c.begin(i)
	p := r.process
	step, waited := time.Millisecond, time.Duration(0)
	for {
		r.progress()
		if r.takeOver() {
			continue
		}
		r.mu.Lock()
		ended := p.pass == nil || p.dead
		r.mu.Unlock()
		if ended {
			return
		}
		if r.failure() != nil {
			return
		}
		if p == r.process && (r.deliver() || r.others()) {
			continue
		}
		if waited > maxStale && p.cache.thaw() {
			continue
		}
		if waited > maxPass {
			r.fail(fmt.Errorf("pass over %s %s has not ended after %s", c.name, i.request, maxPass))
			return
		}
		time.Sleep(step)
		waited += step
		step *= 2
	}
}

// takeOver lets another replica do all there is to do, while the old leader waits in the middle of
// its pass; then the old one finishes that pass and is gone.
func (r *run) takeOver() bool {
	r.mu.Lock()
	d := r.deposed
	r.deposed = nil
	r.mu.Unlock()
	if d == nil {
		return false
	}
	r.begin()
	r.settle()
	r.trace.add(row{what: "the old leader goes on"})
	close(d.resume)
	r.progress()
	for waited := time.Millisecond; waited < maxPass; waited *= 2 {
		r.mu.Lock()
		ended := d.process.pass == nil
		r.mu.Unlock()
		if ended {
			break
		}
		time.Sleep(waited)
		r.progress()
	}
	r.mu.Lock()
	d.process.die()
	r.mu.Unlock()
	r.trace.add(row{what: "the old leader ends"})
	return true
}
