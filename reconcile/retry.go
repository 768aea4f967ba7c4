package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file decides when the next pass of an object runs: Retries.of after the outcome of a step, and retryFailure after an error of the
// pass itself. pass.end returns the delay of the whole pass, and pass.pause adds the end of a pause. classify.go decides which errors lead
// to which outcome.

// Retries are the delays after which a pass is repeated without an event. A field that is zero has its default. Up to a tenth
// is added to each delay, so that objects do not run at the same time.
type Retries struct {
	// First is the delay after the first failure or conflict in a row of an object. The delay doubles after each further
	// one. The default is 250 milliseconds.
	First time.Duration
	// Longest is the delay at which the doubling ends. The default is 1 minute.
	Longest time.Duration
	// Stalled is the delay after an error that only a change can heal, see [Stalled]. It should not be endless, because webhooks,
	// roles and quotas are changed without an event. The default is 10 minutes.
	Stalled time.Duration
}

const (
	// firstBackoff, maxBackoff and stalledRetry are the defaults of [Retries].
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = time.Minute
	stalledRetry = 10 * time.Minute

	// shortestRetry is the shortest delay that can be set. Whoever sets a shorter one has probably forgotten the unit.
	shortestRetry = time.Millisecond

	// quietConflicts is the number of passes in a row that may end in a conflict. One more conflict counts as a failure.
	quietConflicts = 5

	// soonForbidden is how long after the first refusal a forbidden request is retried soon. Permissions often arrive a little
	// later than the operator, and an API server that has just started forbids everything until it has read the roles. The
	// process does not store the first refusal, so this time begins again after a restart.
	soonForbidden = 5 * time.Minute

	// longestForbidden bounds the delay before a forbidden request is retried soon. With the jitter the delay is shorter than a minute.
	longestForbidden = 50 * time.Second

	// maxJitter is the largest jitter, as a fraction of the delay to which it is added.
	maxJitter = 0.1
)

// complete returns the retries with their defaults, or an error that names the wrong field.
func (r Retries) complete() (Retries, error) {
	for _, f := range []struct {
		name     string
		delay    *time.Duration
		fallback time.Duration
	}{
		{"First", &r.First, firstBackoff}, {"Longest", &r.Longest, maxBackoff}, {"Stalled", &r.Stalled, stalledRetry},
	} {
		switch {
		case *f.delay == 0:
			*f.delay = f.fallback
		case *f.delay < shortestRetry:
			return r, fmt.Errorf("WithRetries: %s is %s: set it to %s or more, such as 5*time.Second, or to 0 for the default %s", f.name, *f.delay, shortestRetry, f.fallback)
		}
	}
	if r.First > r.Longest {
		return r, fmt.Errorf("WithRetries: First (%s) is longer than Longest (%s): set both", r.First, r.Longest)
	}
	return r, nil
}

// retry says when the next pass of an object is due.
type retry struct {
	after        time.Duration // the shortest delay that a step or the pass asks for; 0 for none
	notBefore    time.Duration // the longest delay that the API server asks for (Retry-After); 0 for none
	backoff      bool          // the pass counts as a failure of the object, and is repeated after a backoff
	keepFailures bool          // even without backoff, the pass does not reset the number of failures
	lowPriority  bool          // only a poll asks for the shortest delay
}

// attempt is what decides about the next pass, beside the outcomes of the steps.
type attempt struct {
	name     types.NamespacedName
	failures int  // passes in a row that have failed
	soon     bool // a forbidden request is retried soon
}

// of returns when the next pass is due because of the outcome of one step.
func (r Retries) of(o *outcome, a attempt) retry {
	soon := o.forbidden && a.soon
	next := retry{
		after: earlier(o.after, o.jittered), notBefore: o.notBefore,
		backoff:      o.retries || soon,
		keepFailures: o.forbidden && !soon,
	}
	switch {
	case o.state == succeeded:
		next.after = earlier(o.after, jitter(o.jittered, a.name, 0))
	case o.state.ending().lasts:
		next.after = earlier(next.after, jitter(r.Stalled, a.name, 0))
	}
	if soon {
		next.after = earlier(next.after, jitter(longestForbidden, a.name, a.failures))
	}
	next.lowPriority = o.lowPriority && next.after > 0 && !next.backoff
	return next
}

// retryFailure returns when the next pass is due after an error of the pass itself: after the backoff, and not before the
// API server asks for it. err may be nil.
func retryFailure(err error) retry { return retry{backoff: true, notBefore: retryAfter(err)} }

// isLastingConflict reports whether a conflict has to be shown as a failure. failures is the number of failures in a
// row of the object.
func isLastingConflict(o *outcome, failures int) bool {
	return o.state == conflicted && failures >= quietConflicts
}

// merge returns when the next pass is due if both r and other ask for one: after the shorter of their delays, but not
// before the longer of the delays that the API server asks for.
func (r retry) merge(other retry) retry {
	after := earlier(r.after, other.after)
	return retry{
		after:        after,
		notBefore:    max(r.notBefore, other.notBefore),
		backoff:      r.backoff || other.backoff,
		keepFailures: r.keepFailures || other.keepFailures,
		lowPriority:  after > 0 && r.allowsLow(other) && other.allowsLow(r),
	}
}

// allowsLow reports whether r permits a low priority of the next pass: only a poll asks for the delay of r, r has no delay, or the delay of
// the other is shorter.
func (r retry) allowsLow(other retry) bool {
	return r.lowPriority || r.after <= 0 || 0 < other.after && other.after < r.after
}

// delay returns the shortest delay that a step asks for, but at least the delay that the API server asks for. It returns
// 0 if only an event triggers the next pass.
func (r retry) delay() time.Duration { return max(r.after, r.notBefore) }

// backoff returns the delay after a failure. failures is the number of failures in a row before it.
// controller-runtime's own backoff would reach 16 minutes, and is reset whenever a pass returns a delay.
func (r Retries) backoff(failures int) time.Duration {
	delay := r.First
	for range failures {
		if delay > r.Longest/2 {
			return r.Longest
		}
		delay *= 2
	}
	return delay
}

// jitter returns the delay plus a fraction of it. The fraction depends only on the name of the object and on the attempt.
// So the delays of objects that failed together differ, and a test sees the same delay each time.
func jitter(delay time.Duration, name types.NamespacedName, attempt int) time.Duration {
	if delay == 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, attempt))
	part := float64(binary.BigEndian.Uint64(sum[:])) / math.MaxUint64
	return delay + min(time.Duration(part*maxJitter*float64(delay)), math.MaxInt64-delay)
}
