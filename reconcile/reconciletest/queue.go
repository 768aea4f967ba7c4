package reconciletest

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// queue is a controller's work queue, by the rules of controller-runtime's. It has no goroutines: the
// driver decides when a worker gets an item.
type queue struct {
	limiter workqueue.TypedRateLimiter[ctrl.Request]
	cause   func() (batch int, cause string) // of what is added now

	mu         sync.Mutex
	items      map[ctrl.Request]*item
	processing map[ctrl.Request]bool
	hand       chan *item // nil for a controller without workers
	closed     bool
	done       chan struct{}
}

type item struct {
	request  ctrl.Request
	priority int
	batch    int       // of those that are ready the first ones come first
	due      time.Time // zero: ready
	retry    bool      // after an error
	cause    string
}

var _ priorityqueue.PriorityQueue[ctrl.Request] = &queue{}

func newQueue(limiter workqueue.TypedRateLimiter[ctrl.Request], cause func() (int, string)) *queue {
	return &queue{
		limiter: limiter, cause: cause,
		items: map[ctrl.Request]*item{}, processing: map[ctrl.Request]bool{},
		hand: make(chan *item), done: make(chan struct{}),
	}
}

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

// merge keeps the higher priority and the shorter delay.
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

func (q *queue) Add(request ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

func (q *queue) AddAfter(request ctrl.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

func (q *queue) AddRateLimited(request ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

func (q *queue) Forget(request ctrl.Request)          { q.limiter.Forget(request) }
func (q *queue) NumRequeues(request ctrl.Request) int { return q.limiter.NumRequeues(request) }

// GetWithPriority is what a worker calls; it waits for the driver.
func (q *queue) GetWithPriority() (request ctrl.Request, priority int, shutdown bool) {
	select {
	case <-q.done:
		return ctrl.Request{}, 0, true
	case i := <-q.hand:
		return i.request, i.priority, false
	}
}

func (q *queue) Get() (request ctrl.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

func (q *queue) Done(request ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.processing, request)
}

func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

func (q *queue) ShutDownWithDrain() { q.ShutDown() }

func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

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

// take removes the item that comes next, or gives nil if none is due.
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

// compare gives an order that does not depend on which goroutine was faster.
func (i *item) compare(j *item) int {
	return cmp.Or(
		cmp.Compare(j.priority, i.priority),
		i.due.Compare(j.due),
		cmp.Compare(i.batch, j.batch),
		cmp.Compare(i.request.String(), j.request.String()),
	)
}

// due gives when the next item becomes ready that was not tried often enough; zero if there is none.
func (q *queue) due(tried map[ctrl.Request]int, enough int) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first time.Time
	for request, i := range q.items {
		if tried[request] >= enough && !i.retry {
			continue
		}
		if first.IsZero() || i.due.Before(first) {
			first = i.due
		}
	}
	return first
}

// ready gives what is due and was asked for by a delay.
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
