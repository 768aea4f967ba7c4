package fakemanager

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// requestOf returns a request for an object without a namespace.
func requestOf(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// taken takes all ready requests, and returns their names in the order in which they were taken.
func taken(q *queue) []string {
	var names []string
	for i := q.take(); i != nil; i = q.take() {
		names = append(names, i.request.Name)
	}
	return names
}

func TestQueue(t *testing.T) {
	tests := map[string]struct {
		reason string
		add    func(q *queue, batch *int)
		now    []string
		later  []string // the names that are ready a minute later
	}{
		"Once": {
			reason: "a request that is enqueued is not added again",
			add:    func(q *queue, _ *int) { q.Add(requestOf("a")); q.Add(requestOf("a")) },
			now:    []string{"a"},
		},
		"Order": {
			reason: "earlier batches come first, and requests of one batch by name",
			add: func(q *queue, batch *int) {
				q.Add(requestOf("c"))
				*batch++
				q.Add(requestOf("b"))
				q.Add(requestOf("a"))
			},
			now: []string{"c", "a", "b"},
		},
		"Priority": {
			reason: "the higher priority wins",
			add: func(q *queue, _ *int) {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, requestOf("a"), requestOf("c"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-50)}, requestOf("b"))
				q.Add(requestOf("c"))
			},
			now: []string{"c", "b", "a"},
		},
		"Delay": {
			reason: "the shorter delay wins, in whatever order they are added",
			add: func(q *queue, _ *int) {
				q.AddAfter(requestOf("a"), time.Hour)
				q.AddAfter(requestOf("a"), time.Second)
				q.AddAfter(requestOf("b"), time.Millisecond)
				q.AddAfter(requestOf("b"), time.Hour)
				q.AddAfter(requestOf("c"), time.Hour)
			},
			later: []string{"b", "a"},
		},
		"DelayAndEvent": {
			reason: "an event does not wait",
			add: func(q *queue, _ *int) {
				q.AddAfter(requestOf("a"), time.Hour)
				q.Add(requestOf("a"))
				q.Add(requestOf("b"))
				q.AddAfter(requestOf("b"), time.Hour)
			},
			now: []string{"a", "b"},
		},
		"Backoff": {
			reason: "the delay comes from the rate limiter",
			add:    func(q *queue, _ *int) { q.AddRateLimited(requestOf("a")) },
			later:  []string{"a"},
		},
		"ShutDown": {
			reason: "requests are dropped after ShutDown",
			add:    func(q *queue, _ *int) { q.ShutDown(); q.Add(requestOf("a")) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				batch := 0
				limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, time.Minute)
				q := newQueue(limiter, func() (int, string) { return batch, "" })
				tc.add(q, &batch)
				assert.Equal(t, tc.now, taken(q), tc.reason)
				time.Sleep(time.Minute)
				assert.Equal(t, tc.later, taken(q), tc.reason)
			})
		})
	}
}

func TestQueueWhileProcessing(t *testing.T) {
	q := newQueue(nil, func() (int, string) { return 0, "" })
	q.Add(requestOf("a"))
	assert.Equal(t, []string{"a"}, taken(q))
	q.Add(requestOf("a"))
	assert.Empty(t, taken(q), "one pass over an object at a time")
	q.Done(requestOf("a"))
	assert.Equal(t, []string{"a"}, taken(q), "a request added meanwhile is not lost")
}
