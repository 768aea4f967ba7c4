package calls

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waits says what each object waits for.
type waits struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]string
	counts map[string]int // the number of objects that wait, by the reason
}

// The reasons why objects wait, as a label of the metrics.
const (
	waitsForQuota       = "quota"        // the quota of calls is used up
	waitsForThrottling  = "throttling"   // the API has asked to wait
	waitsForServer      = "unreachable"  // the server does not answer
	waitsForConcurrency = "concurrency"  // the server already handles the largest number of objects
	waitsForReturn      = "not_returned" // a call has not returned although its context has ended
)

// set records what an object waits for. If it does not wait, what is empty.
func (w *waits) set(name types.NamespacedName, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was := w.byName[name]; was != "" {
		delete(w.byName, name)
		if w.counts[was]--; w.counts[was] == 0 {
			delete(w.counts, was)
		}
	}
	if what == "" {
		return
	}
	if w.byName == nil {
		w.byName, w.counts = map[types.NamespacedName]string{}, map[string]int{}
	}
	w.byName[name] = what
	w.counts[what]++
}

func (w *waits) count() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}
