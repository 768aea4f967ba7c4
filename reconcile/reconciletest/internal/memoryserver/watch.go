package memoryserver

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// watchers are the open watches. The server's lock protects them.
type watchers []*watcher

func (ws watchers) notify(c *change) {
	for _, w := range ws {
		if w.kind.Storage() == c.kind {
			w.enqueueChange(c)
		}
	}
}

// watcher is an open watch. Its goroutine sends the queued events. It ends after Stop, or when the context ends.
type watcher struct {
	server *Server
	kind   *kind.Kind
	as     reflect.Type
	sel    selection

	events  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
	wake    chan struct{}

	mu    sync.Mutex
	queue []watch.Event
}

// Watch sends an Added event for each existing object, unless the options have a resource version. Then it sends an event for each change.
// No event is lost, even if the receiver is slow.
func (c *liveClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, as, err := c.kindOfList(list)
	if err != nil {
		return nil, err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	sel, err := newSelection(k, o)
	if err != nil {
		return nil, err
	}
	since, err := parseRevision(o.AsListOptions().ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		server: c.server, kind: k, as: as, sel: sel,
		events: make(chan watch.Event), stopped: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if err := w.enqueueEarlier(since, ptr.Deref(o.AsListOptions().SendInitialEvents, false)); err != nil {
		return nil, err
	}
	c.server.store.watchers = append(c.server.store.watchers, w)
	go w.run(ctx)
	return w, nil
}

func parseRevision(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	return revision, nil
}

// enqueueEarlier enqueues the first events of the watch: the objects that exist, or the changes after the revision since.
func (w *watcher) enqueueEarlier(since int64, initial bool) error {
	s := &w.server.store
	if since == 0 || initial {
		present, err := w.server.list(w.kind, w.as, w.sel, s.revision())
		if err != nil {
			return err
		}
		for _, object := range present {
			w.put(watch.Added, object.DeepCopyObject().(client.Object))
		}
		if initial {
			w.put(watch.Bookmark, w.bookmark())
		}
		return nil
	}
	for _, c := range s.history[min(max(since-firstRevision, 0), int64(len(s.history))):] {
		if c != nil && c.kind == w.kind.Storage() {
			w.enqueueChange(c)
		}
	}
	return nil
}

// bookmark returns the object that marks the end of the initial events.
func (w *watcher) bookmark() client.Object {
	end := reflect.New(w.as.Elem()).Interface().(client.Object)
	end.GetObjectKind().SetGroupVersionKind(w.kind.GVK)
	end.SetResourceVersion(strconv.FormatInt(w.server.store.revision(), 10))
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return end
}

// enqueueChange enqueues the event of a change. If an object no longer matches the selectors, the event is a deletion.
func (w *watcher) enqueueChange(c *change) {
	before, errBefore := w.selects(c.before)
	after, errAfter := w.selects(c.after)
	if errBefore != nil || errAfter != nil {
		w.put(watch.Error, nil)
		return
	}
	eventType, shown := watch.Modified, c.after
	switch {
	case before && !after:
		eventType, shown = watch.Deleted, c.before
	case !before && after:
		eventType = watch.Added
	case !after:
		return
	}
	object, err := w.server.view(w.kind, shown, w.as)
	if err != nil {
		w.put(watch.Error, nil)
		return
	}
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion(strconv.FormatInt(c.after.revision, 10)) // an event of a deletion has the revision of the deletion
	w.put(eventType, object)
}

// selects reports whether a version matches the selectors of the watch.
func (w *watcher) selects(v *version) (bool, error) {
	if v == nil || v.object == nil {
		return false, nil
	}
	obj, err := w.server.objectIn(w.kind, v)
	return err == nil && w.sel.matches(obj), err
}

func (w *watcher) put(eventType watch.EventType, object client.Object) {
	event := watch.Event{Type: eventType, Object: object}
	if object == nil {
		event.Object = &metav1.Status{Status: metav1.StatusFailure, Message: "the object cannot be read into the watch's type"}
	} else if !isUntyped(object) {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	w.mu.Lock()
	w.queue = append(w.queue, event)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []watch.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.events)
	defer w.unregister()
	for {
		for _, event := range w.take() {
			select {
			case w.events <- event:
			case <-w.stopped:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-w.wake:
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) unregister() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.store.watchers = slices.DeleteFunc(w.server.store.watchers, func(other *watcher) bool { return other == w })
}

// Stop ends the watch. The channel is closed soon afterwards.
func (w *watcher) Stop() { w.stop.Do(func() { close(w.stopped) }) }

// ResultChan returns the channel of the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }
