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

// queue is a controller's work queue. It follows the rules of controller-runtime's, without goroutines: [Manager.Take]
// decides when a worker gets an item.
type queue struct {
	limiter workqueue.TypedRateLimiter[ctrl.Request]
	cause   func() (batch int, cause string) // see [Options]

	mu         sync.Mutex
	items      map[ctrl.Request]*item
	processing map[ctrl.Request]bool
	toWorker   chan *item // to a worker
	closed     bool
	done       chan struct{}
}

type item struct {
	request  ctrl.Request
	priority int
	batch    int       // of ready items the earlier batch comes first
	due      time.Time // zero: ready
	retry    bool      // after an error
	cause    string    // for the trace
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

// merge adds the item. If the request is enqueued already, the higher priority and the shorter delay win.
func (q *queue) merge(added *item) {
	is := q.items[added.request]
	if is == nil {
		q.items[added.request] = added
		return
	}
	is.priority, is.retry = max(is.priority, added.priority), is.retry || added.retry
	switch {
	case is.due.IsZero():
	case added.due.IsZero():
		is.due, is.batch, is.cause = added.due, added.batch, added.cause
	case added.due.Before(is.due):
		is.due, is.cause = added.due, added.cause
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

// NumRequeues returns how often the backoff of a request grew.
func (q *queue) NumRequeues(request ctrl.Request) int { return q.limiter.NumRequeues(request) }

// GetWithPriority blocks until [Work.Begin] hands over an item. Workers call it.
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

// Done allows the request to be taken again.
func (q *queue) Done(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.processing, request)
}

// ShutDown drops what is enqueued from now on, and ends the workers.
func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

// ShutDownWithDrain is ShutDown.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether ShutDown was called.
func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Len returns how many items are ready.
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

// take removes and returns the item that comes next. It returns nil if none is ready.
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

// compare is an order that does not depend on which goroutine was faster.
func (i *item) compare(j *item) int {
	return cmp.Or(
		cmp.Compare(j.priority, i.priority),
		i.due.Compare(j.due),
		cmp.Compare(i.batch, j.batch),
		cmp.Compare(i.request.String(), j.request.String()),
	)
}

// due returns when the next item becomes ready, of those that were attempted less often than enough or are retries
// after an error. It returns the zero time if there is none.
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

// ready returns the requests that are ready and are no retries after an error.
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
