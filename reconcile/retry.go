package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// This file decides when the next pass of an object runs: retryOf after the outcome of a step, retryFailure after an error
// of the pass itself, and end for the pass as a whole. A pause that ends at a known time is added by pass.pause. classify.go
// decides which errors are which outcome.

const (
	// firstBackoff is the delay after the first failure in a row. It doubles with each further failure, up to maxBackoff.
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = time.Minute

	// stalledRetry is long, but not endless: webhooks, roles and quotas are changed without an event.
	stalledRetry = 10 * time.Minute

	// quietConflicts is the number of passes in a row that may end in a conflict before that counts as a failure.
	quietConflicts = 5

	// quickForbidden is the number of passes in a row that retry what is forbidden with backoff, which takes about a
	// minute. Later ones retry it like invalid input. An API server that has just started forbids everything until it has
	// read the roles.
	quickForbidden = 8

	// maxJitter is the largest part of a delay that is added to it.
	maxJitter = 0.1
)

// retry is when the next pass of an object is due.
type retry struct {
	after        time.Duration // the shortest delay that was asked for; 0 for none
	notBefore    time.Duration // the longest delay that the API server asks for (Retry-After); 0 for none
	backoff      bool          // the pass counts as a failure of the object, and is repeated after a backoff
	keepFailures bool          // a pass without backoff does not reset the number of failures
}

// retryOf returns when the next pass is due because of the outcome of one step. The object of this name has had this number
// of failures in a row.
func retryOf(o *outcome, name types.NamespacedName, failures int) retry {
	quickly := o.forbidden && failures < quickForbidden
	r := retry{
		after: earlier(o.after, o.jittered), notBefore: o.notBefore,
		backoff:      o.retries || quickly,
		keepFailures: o.forbidden && !quickly,
	}
	switch o.state {
	case succeeded:
		r.after = earlier(o.after, jitter(o.jittered, name, 0))
	case stalled:
		r.after = earlier(r.after, jitter(stalledRetry, name, 0))
	}
	return r
}

// retryFailure returns when the next pass is due after an error of the pass itself: after the backoff, and not before the
// API server asks for it. err may be nil.
func retryFailure(err error) retry { return retry{backoff: true, notBefore: retryAfter(err)} }

// isLastingConflict reports whether a conflict has to be shown as a failure, because the object has had this number of
// failures in a row.
func isLastingConflict(o *outcome, failures int) bool {
	return o.state == conflicted && failures >= quietConflicts
}

// end ends a pass: it counts a failure, or resets the number of failures, and returns when the next pass is due.
func (p *pass[T]) end() ctrl.Result {
	switch {
	case p.retry.backoff:
		failures := p.memory.failures(p.name)
		p.memory.addFailure(p.name)
		p.retry.after = earlier(p.retry.after, jitter(backoff(failures), p.name, failures))
	case !p.retry.keepFailures:
		p.memory.resetFailures(p.name)
	}
	return ctrl.Result{RequeueAfter: p.retry.delay()}
}

// merge returns when the next pass is due if it is due by both: after the shorter of the delays that steps ask for, and not
// before the longer of those that the API server asks for.
func (r retry) merge(other retry) retry {
	return retry{
		after:        earlier(r.after, other.after),
		notBefore:    max(r.notBefore, other.notBefore),
		backoff:      r.backoff || other.backoff,
		keepFailures: r.keepFailures || other.keepFailures,
	}
}

// delay returns the shortest delay that was asked for, but not less than what the API server asks for. It is 0 if only an
// event triggers the next pass.
func (r retry) delay() time.Duration { return max(r.after, r.notBefore) }

// earlier returns the shorter of two delays. A delay of 0 or less means none.
func earlier(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// backoff returns the delay after a failure that follows this number of failures in a row.
// controller-runtime's own backoff would reach 16 minutes, and is reset whenever a pass returns a delay.
func backoff(failures int) time.Duration {
	delay := firstBackoff
	for range failures {
		if delay >= maxBackoff {
			break
		}
		delay *= 2
	}
	return min(delay, maxBackoff)
}

// jitter returns the delay plus a part of it. The part depends only on the name of the object and on the attempt: delays of
// objects that failed together differ, and a test sees the same delay each time.
func jitter(delay time.Duration, name types.NamespacedName, attempt int) time.Duration {
	if delay == 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, attempt))
	part := float64(binary.BigEndian.Uint64(sum[:])) / math.MaxUint64
	return delay + time.Duration(part*maxJitter*float64(delay))
}

// retryAfter returns the delay that the API server asks for (Retry-After), or 0.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}
