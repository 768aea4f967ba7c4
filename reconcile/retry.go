package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file decides when the next pass of an object runs. Retries.of decides after the outcome of a step, and retryFailure after an
// error of the pass itself. pass.end returns the delay of the whole pass, and pass.pause adds the end of a pause. classify.go decides
// which errors lead to which outcome.

// Retries are the delays after which a pass is repeated without an event. A field that is zero has its default. Up to a tenth
// is added to each delay, so that objects do not run at the same time.
type Retries struct {
	// First is the delay after the first failure or conflict in a row of an object. The delay doubles after each further
	// one. The default is 250 milliseconds.
	First time.Duration
	// Longest is the longest delay: the delay does not double beyond it. The default is 1 minute.
	Longest time.Duration
	// Stalled is the delay after an error that only a change can remove, see [Stalled]. It should not be endless, because
	// webhooks, roles and quotas are changed without an event. The default is 10 minutes.
	Stalled time.Duration
}

const (
	// firstBackoff, maxBackoff and stalledRetry are the defaults of [Retries].
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = time.Minute
	stalledRetry = 10 * time.Minute

	// shortestRetry is the shortest delay that can be set. If somebody sets a shorter one, the unit is probably
	// missing.
	shortestRetry = time.Millisecond

	// quietConflicts is how many passes in a row may end in a conflict. The next conflict counts as a failure.
	quietConflicts = 5

	// soonForbidden is how long, after the first refusal, a forbidden request is retried soon. Permissions often arrive a
	// little later than the operator, and an API server that has just started forbids everything until it has read the roles.
	// The time of the first refusal is only in memory, so after a restart soonForbidden begins again.
	soonForbidden = 5 * time.Minute

	// longestForbidden is the longest delay while a forbidden request is retried soon. With jitter, the delay is still shorter than a
	// minute.
	longestForbidden = 50 * time.Second

	// maxJitter is the largest jitter, as a fraction of the delay to which it is added.
	maxJitter = 0.1
)

// complete returns the retries with their defaults filled in. If a field is invalid, the error names it.
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

// retry says when the next pass of an object runs.
type retry struct {
	after        time.Duration // the shortest delay that a step or the pass asks for; 0 for none
	notBefore    time.Duration // the longest delay that the API server asks for (Retry-After); 0 for none
	backoff      bool          // the pass counts as a failure, and is repeated after a backoff
	keepFailures bool          // the number of failures is kept, also if backoff is false
	lowPriority  bool          // only a poll asks for the delay in after
}

// attempt has the other facts that decide when the next pass runs, beside the outcomes of the steps.
type attempt struct {
	name     types.NamespacedName
	failures int  // how many passes in a row have failed
	soon     bool // a forbidden request is retried soon
}

// of returns when the next pass runs because of the outcome of one step.
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

// retryFailure returns when the next pass runs after an error of the pass itself: after the backoff, and not earlier than
// the API server asks. err may be nil.
func retryFailure(err error) retry { return retry{backoff: true, notBefore: retryAfter(err)} }

// isLastingConflict reports whether a conflict has to be shown as a failure. failures is how many passes of the
// object in a row have failed.
func isLastingConflict(o *outcome, failures int) bool {
	return o.state == conflicted && failures >= quietConflicts
}

// merge returns when the next pass runs if r and other both ask for one: after the shorter of their delays, but not
// earlier than the API server asks in either.
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

// allowsLow reports whether the next pass may have a low priority as far as r is concerned: only a poll asks for the delay of r, r has no
// delay, or the delay of other is shorter.
func (r retry) allowsLow(other retry) bool {
	return r.lowPriority || r.after <= 0 || 0 < other.after && other.after < r.after
}

// delay returns the shortest delay that a step asks for, but at least the delay that the API server asks for. If only an
// event triggers the next pass, it returns 0.
func (r retry) delay() time.Duration { return max(r.after, r.notBefore) }

// backoff returns the delay after a failure. failures is how many passes in a row failed before it.
// controller-runtime's own backoff is not used: it would reach 16 minutes, and is reset whenever a pass returns a
// delay.
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
