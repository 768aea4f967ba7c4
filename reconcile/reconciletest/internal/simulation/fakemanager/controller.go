package fakemanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// Target is what a pass is about: the controller and its request.
type Target struct {
	Controller string
	Request    ctrl.Request
}

// Compare orders targets by controller and request, as [cmp.Compare] does.
func (t Target) Compare(other Target) int {
	return cmp.Or(cmp.Compare(t.Controller, other.Controller), cmp.Compare(t.Request.String(), other.Request.String()))
}

// Controller is a work queue, and the reconciler that is called for its requests. The reconciler is called by workers of
// controller-runtime. If the controller was added by [Manager.AddReconciler], it calls the reconciler itself.
type Controller struct {
	manager *Manager
	name    string
	queue   *queue
	do      *wrappedReconciler
	forEach *schema.GroupVersionKind // the kind that was given to AddReconciler; nil for a controller of controller-runtime
	known   map[ctrl.Request]bool    // requests that were reconciled before
}

// These are the defaults of controller-runtime's rate limiter.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 1000 * time.Second
)

func (m *Manager) newController(name string) *Controller {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minBackoff, maxBackoff)
	return &Controller{manager: m, name: name, known: map[ctrl.Request]bool{}, queue: newQueue(limiter, m.options.Cause)}
}

// instrument replaces the queue of a controller of controller-runtime by a queue of this package, and wraps its reconciler. The
// controller's type is internal to controller-runtime. So its fields are checked by name and type, and set by reflection.
func (m *Manager) instrument(runnable manager.Runnable) error {
	fields := reflect.Indirect(reflect.ValueOf(runnable))
	if fields.Kind() != reflect.Struct || !fields.FieldByName("NewQueue").IsValid() || !fields.FieldByName("Do").IsValid() {
		return nil // not a controller
	}
	newQueue, known := reflect.TypeAssert[func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request]](fields.FieldByName("NewQueue"))
	do, knownToo := reflect.TypeAssert[ctrlreconcile.Reconciler](fields.FieldByName("Do"))
	if !known || !knownToo || newQueue == nil {
		return fmt.Errorf("controller %T cannot be tested with a manager: only requests of type reconcile.Request are supported; use Process.Reconcile", runnable)
	}
	c := m.newController(fields.FieldByName("Name").String())
	c.do = &wrappedReconciler{controller: c, Reconciler: do}
	fields.FieldByName("Do").Set(reflect.ValueOf(c.do))
	fields.FieldByName("NewQueue").Set(reflect.ValueOf(
		func(_ string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
			c.queue.limiter = limiter
			return c.queue
		}))
	m.controllers = append(m.controllers, c)
	return nil
}

// Name returns the name of the controller.
func (c *Controller) Name() string { return c.name }

// Work is a request that was taken from its queue.
type Work struct {
	Target     Target
	controller *Controller
	item       *item
}

// Take removes the next request from its queue and returns it. It returns nil if none is ready.
func (m *Manager) Take() *Work {
	for _, c := range m.controllers {
		if i := c.queue.take(); i != nil {
			return &Work{Target: Target{c.name, i.request}, controller: c, item: i}
		}
	}
	return nil
}

// maxStart is how long a request waits for a worker. If a kind has no definition, a controller that watches it ends after
// controller-runtime's CacheSyncTimeout, by default two minutes. maxStart is longer than that.
const maxStart = 5 * time.Minute

// Begin starts the reconcile of the request, on another goroutine.
func (w *Work) Begin() {
	c := w.controller
	c.manager.cache.Kinds.passBegins()
	c.do.cause = w.item.cause
	c.known[w.item.request] = true
	if c.forEach != nil {
		go c.reconcile(w.item.request)
		return
	}
	select {
	case c.queue.toWorker <- w.item:
	case <-c.queue.done:
	case <-time.After(maxStart):
		c.manager.options.Fail(fmt.Errorf("controller %s has no free worker after %s: it does not start, or its worker is busy", c.name, maxStart))
	}
}

// End counts the pass for kinds that a fault has frozen. It is called when the pass has ended, or its process has died.
func (w *Work) End() { w.controller.manager.passEnded(w.Target) }

// reconcile reconciles a request as a worker of controller-runtime does.
func (c *Controller) reconcile(request ctrl.Request) {
	defer c.queue.Done(request)
	ctx := log.IntoContext(c.manager.options.Context, c.manager.options.Logger)
	result, err := c.do.Reconcile(ctx, request)
	switch {
	case errors.Is(err, ctrlreconcile.TerminalError(nil)):
	case err != nil:
		c.queue.AddRateLimited(request)
	case result.RequeueAfter > 0:
		c.queue.Forget(request)
		c.queue.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter}, request)
	case result.Requeue: //nolint:staticcheck // reconcilers still use it
		c.queue.AddRateLimited(request)
	default:
		c.queue.Forget(request)
	}
}

// enqueueEach enqueues a request for every object of the controller's kind in the cache.
func (c *Controller) enqueueEach(ctx context.Context) {
	keys, err := c.manager.cache.keys(ctx, *c.forEach)
	if err != nil {
		c.manager.options.Fail(err)
	}
	for _, key := range keys {
		c.Enqueue(key)
	}
}

// Enqueue enqueues a request for the object.
func (c *Controller) Enqueue(key client.ObjectKey) {
	c.queue.Add(ctrl.Request{NamespacedName: key})
}

func (c *Controller) enqueueKnown() {
	for request := range c.known {
		c.queue.Add(request)
	}
}

// Attempts counts the delayed passes of each request since the last change.
type Attempts map[*Controller]map[ctrl.Request]int

// Count counts one attempt for each request of the controller that is ready now, except retries after an error.
func (a Attempts) Count(c *Controller) {
	if a[c] == nil {
		a[c] = map[ctrl.Request]int{}
	}
	for _, request := range c.queue.ready() {
		a[c][request]++
	}
}

// wrappedReconciler calls a reconciler through [Options.Pass].
type wrappedReconciler struct {
	ctrlreconcile.Reconciler
	controller *Controller
	cause      string
}

// Reconcile calls the reconciler through [Options.Pass].
func (o *wrappedReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	target := Target{o.controller.name, request}
	options := &o.controller.manager.options
	ctx = passcontext.WithRandom(passcontext.WithPurityCheck(ctx, options.Fail), options.Random)
	ctx = passcontext.WithPassEnds(ctx, func(end passcontext.PassEnd) { options.Ended(target, end) })
	return options.Pass(target, o.cause, func() (ctrl.Result, error) { return o.Reconciler.Reconcile(ctx, request) })
}
