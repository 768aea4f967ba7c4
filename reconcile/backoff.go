package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
	return wait.Jitter(b.limiter.When(name), jitter)
}

func (b backoff) forget(name types.NamespacedName) { b.limiter.Forget(name) }

// tries is how often in a row the object's passes have failed.
func (b backoff) tries(name types.NamespacedName) int { return b.limiter.NumRequeues(name) }
