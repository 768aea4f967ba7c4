package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// watch answers with a stream of events. An event is sent when the manager's cache would show its change.
func (c *call) watch() (*http.Response, error) {
	query := c.request.URL.Query()
	selected, err := listOptions(query, c.namespace)
	if err != nil {
		return respondError(c.request, err)
	}
	if _, err := c.Server.Selects(c.gvk, selected, nil); err != nil {
		return respondError(c.request, err)
	}
	from, err := revisionOf(query.Get("resourceVersion"))
	if err != nil {
		return respondError(c.request, err)
	}
	w := &watcher{
		target: c.target, server: c.Server, request: c.request.Context(), process: c.Context,
		selected: selected, metadata: wantsMetadata(c.request), wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	w.reader = c.Server.Reader(func(schema.GroupVersionKind) int64 { return w.at }, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	initial := isTrue(query, "sendInitialEvents")
	seen, stop := c.Watch(c.gvk, from, w.handle)
	w.stop = stop
	if err := w.catchUp(from, seen, initial); err != nil {
		stop()
		return respondError(c.request, err)
	}
	return newResponse(c.request, http.StatusOK, w), nil
}

func revisionOf(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	return revision, nil
}

// watcher is an open watch, and the body of its response.
type watcher struct {
	target   *target
	server   *memoryserver.Server
	request  context.Context // the context of the request: when it ends, the watch ends
	process  context.Context // the context of the process: when it ends, the watch ends
	selected *client.ListOptions
	metadata bool
	stop     func()
	wake     chan struct{} // receives a value if lines were added
	closed   chan struct{}
	close    sync.Once

	mu     sync.Mutex
	at     int64         // the revision that reader returns
	reader client.Reader // reads objects at the revision at
	lines  []byte        // the events that Read has not returned yet
}

var _ io.ReadCloser = &watcher{}

// Read waits for events and returns them. It returns io.EOF when the watch is closed, or when the context of the request or of the process
// ends.
func (w *watcher) Read(into []byte) (int, error) {
	for {
		w.mu.Lock()
		n := copy(into, w.lines)
		w.lines = w.lines[n:]
		w.mu.Unlock()
		if n > 0 || len(into) == 0 {
			return n, nil
		}
		select {
		case <-w.wake:
		case <-w.closed:
			return 0, io.EOF
		case <-w.request.Done(): // an error would become an event, for which watch.Filter would wait for ever
			return 0, io.EOF
		case <-w.process.Done():
			return 0, io.EOF
		}
	}
}

// Close ends the watch.
func (w *watcher) Close() error {
	w.close.Do(func() {
		w.stop()
		close(w.closed)
	})
	return nil
}

// catchUp sends what the client has to see first: the objects that exist, or the changes between from and seen. The caller holds the lock.
func (w *watcher) catchUp(from, seen int64, initial bool) (err error) {
	if from == 0 || initial {
		w.at = seen
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(w.target.gvk.GroupVersion().WithKind(w.target.gvk.Kind + "List"))
		if err := w.reader.List(context.Background(), list, w.selected); err != nil {
			return err
		}
		for i := range list.Items {
			if err := w.put(watch.Added, &list.Items[i]); err != nil {
				return err
			}
		}
		if !initial {
			return nil
		}
		end := &unstructured.Unstructured{}
		end.SetGroupVersionKind(w.target.gvk)
		end.SetResourceVersion(strconv.FormatInt(seen, 10))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		return w.put(watch.Bookmark, end)
	}
	for _, change := range w.server.Changes(from) {
		if change.GVK.GroupKind() == w.target.gvk.GroupKind() && change.Revision <= seen {
			if change.Old, err = w.server.InVersion(change.Old, w.target.gvk); err != nil {
				return err
			}
			if change.New, err = w.server.InVersion(change.New, w.target.gvk); err != nil {
				return err
			}
			if err := w.change(&change); err != nil {
				return err
			}
		}
	}
	return nil
}

// handle sends the event of a change.
func (w *watcher) handle(change *memoryserver.Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change(change)
}

// change sends the event for one change. If an object no longer matches the selectors, the event is a deletion. The caller holds the lock.
func (w *watcher) change(change *memoryserver.Change) error {
	before, after := w.selects(change.Old), w.selects(change.New)
	eventType, shown := watch.Modified, change.New
	switch {
	case !before && !after:
		return nil
	case before && !after:
		eventType, shown = watch.Deleted, change.Old
	case after && !before:
		eventType = watch.Added
	}
	var err error
	if w.at, err = revisionOf(shown.GetResourceVersion()); err != nil {
		return err
	}
	obj := w.target.object(false).(*unstructured.Unstructured)
	if err := w.reader.Get(context.Background(), change.Key, obj); err != nil {
		return err
	}
	if eventType == watch.Deleted {
		obj.SetResourceVersion(strconv.FormatInt(change.Revision, 10))
	}
	return w.put(eventType, obj)
}

func (w *watcher) selects(obj client.Object) bool {
	selected, _ := w.server.Selects(w.target.gvk, w.selected, obj) // the method watch has returned the error already
	return selected
}

// put adds an event to the stream. The caller holds the lock.
func (w *watcher) put(eventType watch.EventType, obj *unstructured.Unstructured) error {
	var sent any = obj.Object
	if w.metadata {
		sent = map[string]any{"apiVersion": metadataKind.GroupVersion().String(), "kind": metadataKind.Kind, "metadata": obj.Object["metadata"]}
	}
	line, err := json.Marshal(map[string]any{"type": eventType, "object": sent})
	if err != nil {
		return err
	}
	w.lines = append(append(w.lines, line...), '\n')
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}
