package reconcile

import "time"

// delays gathers when the next pass is due.
type delays struct {
	after     time.Duration // 0: no wait
	notBefore time.Duration // what the API server asks for
	failed    bool
	exhausted bool // backoff is not to begin anew
}

func (d *delays) wait(after time.Duration) {
	if after > 0 && (d.after == 0 || after < d.after) {
		d.after = after
	}
}

// fail is for an error that backoff retries.
func (d *delays) fail(err error) {
	d.failed = true
	d.notBefore = max(d.notBefore, retryAfter(err))
}

// delay is the shortest of all waits and the backoff, but no less than the API server asks for;
// 0 if only an event brings the next pass.
func (p *pass[T]) delay() time.Duration {
	switch {
	case p.next.failed:
		p.next.wait(p.backoff.next(p.name))
	case !p.next.exhausted:
		p.backoff.forget(p.name)
	}
	return max(p.next.after, p.next.notBefore)
}
