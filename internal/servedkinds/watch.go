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

// Options say what a [Watch] does while its kind is served.
type Options struct {
	// Indexes are added to the cache before the handlers are. The keys are the names of the index fields. Two watches may have the same index.
	Indexes map[string]client.IndexerFunc
	// Handlers get the events.
	Handlers []Handler
	// Requests returns the requests that are enqueued when reads become permitted, when they no longer are, and when the watch of a served
	// kind does not start in time. If it returns an error, it is called again. It may be nil.
	Requests func(ctx context.Context) ([]ctrl.Request, error)
	// Appeared is called when the kind becomes served, before reads are permitted. It may be nil. It must not call the Watch.
	Appeared func()
	// Gone is called when reads are no longer permitted, and before the informer is removed. So it may still read the cache. It may be nil.
	Gone func(ctx context.Context)
}

// Watch is the source of events of one kind for one controller. Create it by [Kinds.Watch], and pass it to WatchesRawSource of exactly one
// controller's builder. The builder's event filter does not apply to it.
type Watch struct {
	kinds   *Kinds
	kind    *kind
	options Options

	// Start sets these.
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]

	// The lock of Kinds guards these.
	attached *attachment   // nil while the kind is not served
	served   bool          // reads are permitted
	settled  chan struct{} // closed when the controller need not wait any more before it starts its workers
	waited   bool          // the controller has stopped waiting
}

var _ source.TypedSyncingSource[ctrl.Request] = &Watch{}

// Watch returns a watch of the kind of obj. The cache holds the objects in the same form as obj: typed, unstructured, or only metadata. If
// no scheme has the type of obj, Watch returns an error.
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

// String returns the name of the source in the log of the controller.
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

// WaitForSync is called by the controller before its workers start. If the kind is served, it waits until the handlers have got all initial
// events. If the context ends before that, it returns no error: a kind that is optional must not keep the controller from working.
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

// Acquire reports whether the kind is served, and its objects may be read from the cache. If it returns true, the caller must call
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

// CheckAgain makes new checks whether the kind is served, as an event of its definition does. Call it if the API server answers a request
// as if the kind was not served.
func (w *Watch) CheckAgain() {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	if s := w.kinds.schedules[w.kind.gvk.GroupVersion()]; s != nil && s.quick == 0 {
		s.burst(time.Now())
		w.kinds.wakeUp()
	}
}

// Release ends the permission to read that [Watch.Acquire] has given.
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

// setServed permits or forbids reads of the watched kind. If that is a change, it calls settle and changed. The caller holds the lock.
func (w *Watch) setServed(served bool) {
	if w.served == served {
		return
	}
	w.served = served
	w.settle()
	w.changed()
}

// changed lets enqueue run in a goroutine. While the controller still waits to start, it does nothing: the controller is about to reconcile
// everything. The caller holds the lock.
func (w *Watch) changed() {
	if w.waited && w.options.Requests != nil {
		w.kinds.goroutines.Go(w.enqueue)
	}
}

// settle lets the controller start its workers. The caller holds the lock.
func (w *Watch) settle() {
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

// enqueue enqueues what the function Requests of the options returns. After an error it tries again.
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

// add adds requests to the queue. In a priority queue, they come after the requests of events.
func (w *Watch) add(requests []ctrl.Request) {
	if queue, ok := w.queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		w.queue.Add(request)
	}
}

// wakeUp makes the loop of [Kinds.Start] run once more.
func (k *Kinds) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// definitionChanged is called for an event of a CustomResourceDefinition of this group. It makes a check of the group due at once. If the
// event is not a part of the first list of definitions (initial), more quick checks follow.
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

// attachment has the handlers that a watch has added to one informer.
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
		// After the attachment has ended, the informer may still deliver events. They are dropped.
		predicates := append([]predicate.Predicate{predicate.NewPredicateFuncs(func(client.Object) bool { return a.ctx.Err() == nil })}, h.Predicates...)
		s := &source.Informer{Informer: &registrar{Informer: informer, attachment: a}, Handler: h.Handler, Predicates: predicates}
		if err := s.Start(a.ctx, w.queue); err != nil {
			a.stop()
			return nil, err
		}
	}
	return a, nil
}

// slowStart is the time in which a watch usually starts. If the API server forbids it, a watch does not start.
const slowStart = 10 * time.Second

// waitForSync waits until the informer has listed its objects, and the handlers have got them. If the attachment or the context ends before
// that, it returns false. If the wait takes longer than slowStart, waitForSync calls slow once, and continues to wait.
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
		case <-ctx.Done(): // the manager stops this package before the controllers, and a.ctx belongs to a controller
			return false
		}
	}
	return true
}

// stop removes the handlers from the informer. Other watches may still use the informer.
func (a *attachment) stop() {
	a.once.Do(func() {
		a.end()
		for _, r := range a.registrations {
			_ = a.informer.RemoveEventHandler(r) // an error only means that the informer does not have this handler
		}
	})
}

// registrar is an informer that remembers the handlers which are added to it.
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
