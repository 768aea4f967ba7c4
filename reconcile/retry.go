package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
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
	after     time.Duration // the delay that a step asks for; 0 for none
	notBefore time.Duration // the delay that the API server asks for; 0 for none
	backoff   bool          // the pass counts as a failure of the object
	// keepFailures keeps the number of failures as it is. Otherwise a pass without backoff resets it.
	keepFailures bool
}

// retryOf returns when the step of an outcome is due again. The object has had this number of failures in a row.
func retryOf(o *outcome, failures int) retry {
	quickly := o.forbidden && failures < quickForbidden
	return retry{
		after: o.after, notBefore: o.notBefore,
		backoff:      o.retries || quickly,
		keepFailures: o.forbidden && !quickly,
	}
}

// retryFailure is for an error of the pass itself, which is retried with backoff.
func retryFailure(err error) retry { return retry{backoff: true, notBefore: retryAfter(err)} }

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

// earlier returns the shorter delay. A delay of 0 is none.
func earlier(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// backoff returns the delay after a failure that follows this number of failures in a row. It doubles each time.
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
