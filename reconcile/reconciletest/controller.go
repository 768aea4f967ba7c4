package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// controller is a queue and what is called for its items, by workers of controller-runtime or by us.
type controller struct {
	process *Process
	name    string
	queue   *queue
	do      *observed
	every   *schema.GroupVersionKind // the kind of whose objects each is called for; nil: a manager's controller
	known   map[ctrl.Request]bool    // what a pass has run for
}

// controller-runtime's default.
const (
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 1000 * time.Second
)

func newController(p *Process, name string) *controller {
	return &controller{
		process: p, name: name, known: map[ctrl.Request]bool{},
		queue: newQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstBackoff, lastBackoff), p.run.cause),
	}
}

// adopt gives a controller of controller-runtime our queue, and looks on when it reconciles. Only
// fields whose names and types are known are touched: what the manager is given is of an internal type.
func adopt(p *Process, runnable manager.Runnable) error {
	fields := reflect.Indirect(reflect.ValueOf(runnable))
	if fields.Kind() != reflect.Struct || !fields.FieldByName("NewQueue").IsValid() || !fields.FieldByName("Do").IsValid() {
		return nil // some other runnable
	}
	newQueue, known := reflect.TypeAssert[func(string, workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request]](fields.FieldByName("NewQueue"))
	do, knownToo := reflect.TypeAssert[ctrlreconcile.Reconciler](fields.FieldByName("Do"))
	if !known || !knownToo || newQueue == nil {
		return fmt.Errorf("controller %T cannot be tested with a manager: only requests of type reconcile.Request are known; use Process.Reconcile", runnable)
	}
	c := newController(p, fields.FieldByName("Name").String())
	c.do = &observed{controller: c, Reconciler: do}
	fields.FieldByName("Do").Set(reflect.ValueOf(c.do))
	fields.FieldByName("NewQueue").Set(reflect.ValueOf(
		func(_ string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
			c.queue.limiter = limiter
			return c.queue
		}))
	p.controllers = append(p.controllers, c)
	return nil
}

// begin lets the item be reconciled, on another goroutine.
func (c *controller) begin(i *item) {
	c.do.cause = i.cause
	c.known[i.request] = true
	if c.every == nil {
		select {
		case c.queue.hand <- i:
		case <-c.queue.done:
		case <-time.After(time.Minute):
			c.process.run.fail(fmt.Errorf("controller %s has no worker that is free", c.name))
		}
		return
	}
	go c.reconcile(i.request)
}

// reconcile does what a worker of controller-runtime does.
func (c *controller) reconcile(request ctrl.Request) {
	defer c.queue.Done(request)
	ctx := log.IntoContext(c.process.ctx, c.process.run.logger(c.process))
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

// enqueueAll asks for a pass over every object that the cache shows.
func (c *controller) enqueueAll(ctx context.Context) {
	for _, key := range c.process.cache.keys(ctx, *c.every) {
		c.enqueue(key)
	}
}

func (c *controller) enqueue(key client.ObjectKey) { c.queue.Add(ctrl.Request{NamespacedName: key}) }

// enqueueKnown asks for a pass over everything that there has been a pass over.
func (c *controller) enqueueKnown() {
	for request := range c.known {
		c.queue.Add(request)
	}
}

// observed is a reconciler whose passes are recorded.
type observed struct {
	ctrlreconcile.Reconciler
	controller *controller
	cause      string
}

func (o *observed) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	p := o.controller.process
	pass := p.run.beginPass(o.controller, request, o.cause)
	defer func() {
		if r := recover(); r != nil {
			err = panicError(fmt.Sprintf("pass %d over %s %s", pass.number, pass.controller.name, nameOf(request.NamespacedName)), r)
			p.run.panicked(p, err)
		}
		p.run.endPass(p, pass, result, err)
	}()
	return o.Reconciler.Reconcile(ctx, request)
}

func itemsOf(list client.ObjectList) []client.Object {
	var all []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function gives no error
		all = append(all, item.(client.Object))
		return nil
	})
	return all
}
