package fakemanager

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// queue is a controller's work queue. It follows the rules of controller-runtime's priority queue, but has no goroutines. A worker gets an
// item only when [Work.Begin] is called for an item that [Manager.Take] has taken.
type queue struct {
	limiter workqueue.TypedRateLimiter[ctrl.Request]
	cause   func() (batch int, cause string) // see [Options]

	mu         sync.Mutex
	items      map[ctrl.Request]*item
	processing map[ctrl.Request]bool
	toWorker   chan *item // Begin sends items to workers by it
	closed     bool
	done       chan struct{}
}

type item struct {
	request  ctrl.Request
	priority int
	batch    int       // items of earlier batches are taken first
	due      time.Time // zero: ready at once
	retry    bool      // it is a retry after an error
	cause    string    // why it was enqueued, for the trace
}

var _ priorityqueue.PriorityQueue[ctrl.Request] = &queue{}

func newQueue(limiter workqueue.TypedRateLimiter[ctrl.Request], cause func() (int, string)) *queue {
	return &queue{
		limiter: limiter, cause: cause,
		items: map[ctrl.Request]*item{}, processing: map[ctrl.Request]bool{},
		toWorker: make(chan *item), done: make(chan struct{}),
	}
}

// AddWithOpts enqueues requests.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	batch, cause := q.cause()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for _, request := range requests {
		after := o.After
		if after > 0 {
			cause = fmt.Sprintf("%s later", after)
		}
		if o.RateLimited {
			if limited := q.limiter.When(request); after == 0 || limited < after {
				after, cause = limited, fmt.Sprintf("again after %s", limited)
			}
		}
		added := &item{request: request, batch: batch, retry: o.RateLimited, cause: cause}
		if o.Priority != nil {
			added.priority = *o.Priority
		}
		if after > 0 {
			added.due = time.Now().Add(after)
		}
		q.merge(added)
	}
}

// merge adds an item. If its request is already enqueued, the higher priority and the shorter delay are kept.
func (q *queue) merge(added *item) {
	present := q.items[added.request]
	if present == nil {
		q.items[added.request] = added
		return
	}
	present.priority, present.retry = max(present.priority, added.priority), present.retry || added.retry
	switch {
	case present.due.IsZero():
	case added.due.IsZero():
		present.due, present.batch, present.cause = added.due, added.batch, added.cause
	case added.due.Before(present.due):
		present.due, present.cause = added.due, added.cause
	}
}

// Add enqueues a request.
func (q *queue) Add(request ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter enqueues a request after a delay.
func (q *queue) AddAfter(request ctrl.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited enqueues a request after the backoff.
func (q *queue) AddRateLimited(request ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// Forget resets the backoff of a request.
func (q *queue) Forget(request ctrl.Request) { q.limiter.Forget(request) }

// NumRequeues returns how often a request was rate limited since it was last forgotten.
func (q *queue) NumRequeues(request ctrl.Request) int { return q.limiter.NumRequeues(request) }

// GetWithPriority blocks until [Work.Begin] sends an item. Workers call it.
func (q *queue) GetWithPriority() (request ctrl.Request, priority int, shutdown bool) {
	select {
	case <-q.done:
		return ctrl.Request{}, 0, true
	case i := <-q.toWorker:
		return i.request, i.priority, false
	}
}

// Get is GetWithPriority without the priority.
func (q *queue) Get() (request ctrl.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// Done ends the processing of a request, so that the request can be taken again.
func (q *queue) Done(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.processing, request)
}

// ShutDown ends the workers. Requests that are enqueued later are dropped.
func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

// ShutDownWithDrain does the same as ShutDown, and does not wait.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether ShutDown was called.
func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Len returns the number of items that have no delay.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, i := range q.items {
		if i.due.IsZero() {
			n++
		}
	}
	return n
}

// take removes and returns the next item. It returns nil if none is ready.
func (q *queue) take() *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	var next *item
	for request, i := range q.items {
		if q.processing[request] || i.due.After(now) {
			continue
		}
		if next == nil || i.compare(next) < 0 {
			next = i
		}
	}
	if next != nil {
		delete(q.items, next.request)
		q.processing[next.request] = true
	}
	return next
}

// compare defines the order in which items are taken: by priority, time, batch and name. The order does not depend on which goroutine
// enqueued first.
func (i *item) compare(j *item) int {
	return cmp.Or(
		cmp.Compare(j.priority, i.priority),
		i.due.Compare(j.due),
		cmp.Compare(i.batch, j.batch),
		cmp.Compare(i.request.String(), j.request.String()),
	)
}

// due returns when the next item becomes ready, or the zero time if there is none. It ignores items with enough attempts, unless they are
// retries after an error.
func (q *queue) due(attempts map[ctrl.Request]int, enough int) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first time.Time
	for request, i := range q.items {
		if attempts[request] >= enough && !i.retry {
			continue
		}
		if first.IsZero() || i.due.Before(first) {
			first = i.due
		}
	}
	return first
}

// ready returns the requests that are ready, except retries after an error.
func (q *queue) ready() []ctrl.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []ctrl.Request
	now := time.Now()
	for request, i := range q.items {
		if !i.due.After(now) && !i.retry {
			all = append(all, request)
		}
	}
	return all
}
