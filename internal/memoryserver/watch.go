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
)

// watchers are the open watches. The server's lock guards them.
type watchers []*watcher

func (ws watchers) tell(s *Server, c *change) {
	for _, w := range ws {
		if w.kind == c.kind {
			w.notice(s, c)
		}
	}
}

// watcher is an open watch. Its goroutine hands out what is in the queue, and ends with Stop or with
// the context.
type watcher struct {
	server *Server
	kind   *kind
	as     reflect.Type
	sel    selection

	events  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
	wake    chan struct{}

	mu    sync.Mutex
	queue []watch.Event
}

// Watch tells the objects that are there as added, unless the options name a resource version, and
// then every change. Nothing is lost, however slowly the events are taken.
func (c *liveClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, as, err := c.server.kindOfList(list)
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
	if err := w.begin(since, ptr.Deref(o.AsListOptions().SendInitialEvents, false)); err != nil {
		return nil, err
	}
	c.server.watchers = append(c.server.watchers, w)
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

// begin queues what happened before the watch.
func (w *watcher) begin(since int64, initial bool) error {
	s := w.server
	if since == 0 || initial {
		present, err := s.list(w.kind, w.as, w.sel, s.revision())
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
		if c != nil && c.kind == w.kind {
			w.notice(s, c)
		}
	}
	return nil
}

// bookmark marks the end of what was there before.
func (w *watcher) bookmark() client.Object {
	end := reflect.New(w.as.Elem()).Interface().(client.Object)
	end.GetObjectKind().SetGroupVersionKind(w.kind.gvk)
	end.SetResourceVersion(strconv.FormatInt(w.server.revision(), 10))
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return end
}

// notice queues a change. An object that leaves the selection is deleted for the watcher.
func (w *watcher) notice(s *Server, c *change) {
	before := c.before != nil && w.sel.matches(c.before.object)
	after := w.sel.matches(c.after.object)
	kind, shown := watch.Modified, c.after
	switch {
	case before && !after:
		kind, shown = watch.Deleted, c.before
	case !before && after:
		kind = watch.Added
	case !after:
		return
	}
	object, err := s.view(w.kind, shown, w.as)
	if err != nil {
		w.put(watch.Error, nil)
		return
	}
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion(strconv.FormatInt(c.after.revision, 10)) // of a deletion: its own
	w.put(kind, object)
}

func (w *watcher) put(kind watch.EventType, object client.Object) {
	event := watch.Event{Type: kind, Object: object}
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
	defer w.leave()
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

func (w *watcher) leave() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.watchers = slices.DeleteFunc(w.server.watchers, func(other *watcher) bool { return other == w })
}

// Stop ends the watch. The channel is closed soon after.
func (w *watcher) Stop() { w.stop.Do(func() { close(w.stopped) }) }

// ResultChan gives the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }
