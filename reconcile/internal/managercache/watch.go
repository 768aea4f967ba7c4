package managercache

import (
	"sync"

	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// releasedWatch is a watch that drops its inner watch when it is stopped. client-go keeps the first watch of an informer in memory for as
// long as the informer runs, and the inner watch has a buffer as large as the largest object that it has decoded.
type releasedWatch struct {
	results <-chan apiwatch.Event

	mu    sync.Mutex
	inner apiwatch.Interface // nil after Stop
}

func newReleasedWatch(inner apiwatch.Interface) apiwatch.Interface {
	return &releasedWatch{results: inner.ResultChan(), inner: inner}
}

// ResultChan returns the channel of the inner watch.
func (w *releasedWatch) ResultChan() <-chan apiwatch.Event { return w.results }

// Stop stops the inner watch. It may be called several times.
func (w *releasedWatch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inner != nil {
		w.inner.Stop()
		w.inner = nil
	}
}
