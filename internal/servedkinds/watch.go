package servedkinds

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Handler handles the events of a kind that pass all predicates.
type Handler struct {
	Handler    handler.EventHandler
	Predicates []predicate.Predicate
}

// Options are what a [Watch] does while its kind is served.
type Options struct {
	// Indexes are added to the cache before the handlers are, by the names of their fields. Two watches may have the same.
	Indexes map[string]client.IndexerFunc
	// Handlers get the events.
	Handlers []Handler
	// Requests returns what is enqueued when reads become permitted, when they no longer are, and when the watch of a kind that
	// is served does not start. An error is retried. It may be nil.
	Requests func(ctx context.Context) ([]ctrl.Request, error)
	// Appeared is called before reads are permitted. It may be nil. It must not call the Watch.
	Appeared func()
	// Gone is called when reads are no longer permitted, before the informer is removed, so it may still read the cache. It
	// may be nil.
	Gone func(ctx context.Context)
}

// Watch is the source of one controller for one kind. Make it with [Kinds.Watch], and pass it to the method WatchesRawSource
// of the builder of exactly one controller. The event filter of the builder does not apply to it.
type Watch struct {
	kinds   *Kinds
	kind    *kind
	options Options

	// Set by Start.
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]

	// The lock of the Kinds guards these.
	attached *attachment   // nil while the kind is not served
	served   bool          // reads are permitted
	settled  chan struct{} // closed when the controller need not wait
	waited   bool          // the controller does not wait any more
}

var _ source.TypedSyncingSource[ctrl.Request] = &Watch{}

// Watch returns a watch of the kind of obj. The cache holds its objects in the form of obj: typed, unstructured, or metadata
// alone. A type that is in no scheme is an error.
func (k *Kinds) Watch(obj client.Object, o Options) (*Watch, error) {
	gvk, err := apiutil.GVKForObject(obj, k.scheme)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	id := key{gvk, reflect.TypeOf(obj)}
	kd := k.kinds[id]
	if kd == nil {
		kd = &kind{gvk: gvk, object: obj.DeepCopyObject().(client.Object)}
		k.kinds[id] = kd
	}
	return &Watch{kinds: k, kind: kd, options: o, settled: make(chan struct{})}, nil
}

// AddHandler adds a handler. It must be called before Start.
func (w *Watch) AddHandler(h Handler) { w.options.Handlers = append(w.options.Handlers, h) }

// String returns what the log of the controller calls the source.
func (w *Watch) String() string { return fmt.Sprintf("source of %s while it is served", w.kind.gvk) }

// Start is called by the controller. It returns at once.
func (w *Watch) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	k := w.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	w.ctx, w.queue = ctx, queue
	w.kind.watches = append(w.kind.watches, w)
	gv := w.kind.gvk.GroupVersion()
	if k.schedules[gv] == nil {
		k.schedules[gv] = &schedule{}
	}
	k.schedules[gv].next = time.Now()
	k.wakeUp()
	context.AfterFunc(ctx, func() { k.leave(w) })
	return nil
}

// WaitForSync is called by the controller before its workers start. If the kind is served, it waits until the handlers have had
// all initial events. If the context ends before that, it returns no error: a kind that is optional must not keep the other
// kinds from working.
func (w *Watch) WaitForSync(ctx context.Context) error {
	select {
	case <-w.settled:
	case <-ctx.Done():
		if w.ctx.Err() == nil {
			w.kinds.logger.Info("A kind is served but not watched yet: has the operator the permissions get, list and watch for it?", "kind", w.kind.gvk.String())
		}
	}
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	w.waited = true
	return nil
}

// Acquire reports whether the kind is served, and its objects may be read from the cache. If so, the caller must call
// [Watch.Release] after the last read.
func (w *Watch) Acquire() bool {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	if w.served {
		w.kind.readers++
	}
	return w.served
}

// Served reports whether the kind is served. Its objects may not be in the cache yet: see [Watch.Acquire].
func (w *Watch) Served() bool {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	return w.kind.phase == running
}

// CheckAgain starts new checks of whether the kind is served, as an event of its definition does. Call it if the API server
// answers as if the kind were not served.
func (w *Watch) CheckAgain() {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	if s := w.kinds.schedules[w.kind.gvk.GroupVersion()]; s != nil && s.quick == 0 {
		s.burst(time.Now())
		w.kinds.wakeUp()
	}
}

// Release ends what [Watch.Acquire] has permitted.
func (w *Watch) Release() {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	w.kind.readers--
	if w.kind.readers == 0 && w.kind.phase == draining {
		w.kinds.wakeUp()
	}
}

// leave removes a watch whose controller has ended.
func (k *Kinds) leave(w *Watch) {
	k.mu.Lock()
	w.kind.watches = slices.DeleteFunc(w.kind.watches, func(other *Watch) bool { return other == w })
	attached := w.attached
	w.attached, w.served = nil, false
	w.settle()
	k.mu.Unlock()
	if attached != nil {
		attached.stop()
	}
}

// setServed permits or ends the reads of the watch, and enqueues its requests. The caller holds the lock.
func (w *Watch) setServed(served bool) {
	if w.served == served {
		return
	}
	w.served = served
	w.settle()
	w.changed()
}

// changed enqueues the requests of the watch. If the controller is about to reconcile everything, it does nothing. The caller
// holds the lock.
func (w *Watch) changed() {
	if w.waited && w.options.Requests != nil {
		w.kinds.goroutines.Go(w.enqueue)
	}
}

// settle ends the wait of the controller. The caller holds the lock.
func (w *Watch) settle() {
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

// enqueue enqueues the requests of the watch.
func (w *Watch) enqueue() {
	for delay := time.Second; w.ctx.Err() == nil; delay = min(2*delay, time.Minute) {
		requests, err := w.options.Requests(w.ctx)
		if err == nil {
			w.add(requests)
			return
		}
		w.kinds.logger.Error(err, "Cannot list what a change of a kind concerns", "kind", w.kind.gvk.String())
		select {
		case <-w.ctx.Done():
		case <-time.After(delay):
		}
	}
}

// add adds requests to the queue. If the queue has priorities, they come after the requests of events.
func (w *Watch) add(requests []ctrl.Request) {
	if queue, ok := w.queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		w.queue.Add(request)
	}
}

// wakeUp makes the loop look what is due.
func (k *Kinds) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// definitionChanged makes a check of a group due at once, after an event of a CustomResourceDefinition. If the definition did
// not exist when the watch began, quick checks follow.
func (k *Kinds) definitionChanged(group string, initial bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for gv, s := range k.schedules {
		switch {
		case gv.Group != group:
			continue
		case initial:
			s.within(0, time.Now())
		default:
			s.burst(time.Now())
		}
		k.wakeUp()
	}
}

// attachment is the handlers of a watch at one informer.
type attachment struct {
	ctx           context.Context
	end           context.CancelFunc
	informer      cache.Informer
	registrations []toolscache.ResourceEventHandlerRegistration
	once          sync.Once
}

// newAttachment adds the handlers of the watch to the informer.
func newAttachment(w *Watch, informer cache.Informer) (*attachment, error) {
	a := &attachment{informer: informer}
	a.ctx, a.end = context.WithCancel(w.ctx)
	for _, h := range w.options.Handlers {
		// Events that are still delivered after the end are dropped.
		predicates := append([]predicate.Predicate{predicate.NewPredicateFuncs(func(client.Object) bool { return a.ctx.Err() == nil })}, h.Predicates...)
		s := &source.Informer{Informer: &registrar{Informer: informer, attachment: a}, Handler: h.Handler, Predicates: predicates}
		if err := s.Start(a.ctx, w.queue); err != nil {
			a.stop()
			return nil, err
		}
	}
	return a, nil
}

// slowStart is how long the start of a watch usually takes at most. A watch that is forbidden does not start.
const slowStart = 10 * time.Second

// waitForSync waits until the informer has listed its objects and the handlers have had them. It returns false if the
// attachment or the context ended before. It calls slow once if that takes long.
func (a *attachment) waitForSync(ctx context.Context, slow func()) bool {
	timer := time.NewTimer(slowStart)
	defer timer.Stop()
	remaining := []toolscache.DoneChecker{a.informer.HasSyncedChecker()}
	for _, r := range a.registrations {
		remaining = append(remaining, r.HasSyncedChecker())
	}
	for len(remaining) > 0 {
		select {
		case <-remaining[0].Done():
			remaining = remaining[1:]
		case <-timer.C:
			slow()
		case <-a.ctx.Done():
			return false
		case <-ctx.Done(): // the manager stops this package before the controllers, whose context a.ctx is
			return false
		}
	}
	return true
}

// stop removes the handlers from the informer, which other watches may still use.
func (a *attachment) stop() {
	a.once.Do(func() {
		a.end()
		for _, r := range a.registrations {
			_ = a.informer.RemoveEventHandler(r) // the error is that the handler was not added to this informer
		}
	})
}

// registrar is an informer that remembers the handlers which are added.
type registrar struct {
	cache.Informer
	attachment *attachment
}

func (r *registrar) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := r.Informer.AddEventHandlerWithOptions(h, o)
	if err == nil {
		r.attachment.registrations = append(r.attachment.registrations, registration)
	}
	return registration, err
}
