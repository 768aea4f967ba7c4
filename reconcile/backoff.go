package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const (
	firstBackoff  = 250 * time.Millisecond
	lastBackoff   = time.Minute
	terminalRetry = 10 * time.Minute
	// quietConflicts is how many passes in a row may lose a race before that counts as a failure.
	quietConflicts = 5
	// quickRefusals is how many passes in a row may be forbidden something before that is retried like invalid input: a
	// minute's. An API server that has just started forbids everything until it has read the roles.
	quickRefusals = 8
	jitter        = 0.1 // of a delay, at most, on top: objects that failed together part
)

// backoff counts failures per object. controller-runtime's own would reach 16 minutes, and
// would be lost whenever a pass returns a delay.
type backoff struct {
	limiter workqueue.TypedRateLimiter[types.NamespacedName]
}

func newBackoff() backoff {
	return backoff{workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstBackoff, lastBackoff)}
}

func (b backoff) next(name types.NamespacedName) time.Duration {
	attempt := b.limiter.NumRequeues(name)
	return spread(b.limiter.When(name), name, attempt)
}

func (b backoff) forget(name types.NamespacedName) { b.limiter.Forget(name) }

// tries is how often in a row the object's passes have failed.
func (b backoff) tries(name types.NamespacedName) int { return b.limiter.NumRequeues(name) }

// spread makes a delay longer by up to the jitter. How much follows from the object's name and the
// attempt alone: objects part, and what happened once happens again in a test.
func spread(d time.Duration, name types.NamespacedName, attempt int) time.Duration {
	if d == 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, attempt))
	share := float64(binary.BigEndian.Uint64(sum[:])) / math.MaxUint64
	return d + time.Duration(share*jitter*float64(d))
}
