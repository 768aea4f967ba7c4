package fakemanager

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer holds the event handlers of a kind. [Manager.Deliver] calls them. As with a real informer, the handlers share the objects of
// events. The old object of an update is the new object of the previous event.
type informer struct {
	cache    *Cache
	kind     *kind
	handlers []*registration

	mu    sync.Mutex
	shown map[client.ObjectKey]shownObject // the last shown object of each name
}

// shownObject is an object that an informer has shown to its handlers.
type shownObject struct {
	of     client.Object // the object on the server
	object client.Object // the object in the informer's Go type, after the transform function
}

// show returns the object in the informer's Go type. It returns nil if obj is nil, or if the cache does not hold it. It converts each
// version of an object once, and keeps the result until it shows another version. Like a real cache, it calls the index functions with the
// result.
func (i *informer) show(obj client.Object) (client.Object, error) {
	if obj == nil || !i.kind.selection.Holds(obj) {
		return nil, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if last := i.shown[key]; last.of == obj {
		return last.object, nil
	}
	made, err := i.kind.form.convert(obj, i.kind.selection.Transform)
	if err != nil {
		return nil, err
	}
	i.shown[key] = shownObject{of: obj, object: made}
	i.cache.indexes.extract(i.kind.gvk, made)
	return made, nil
}

var _ cache.Informer = &informer{}

// form is a way in which an informer holds objects: as Go types, unstructured or as metadata. Each form of a kind has an informer of its
// own.
type form int

const (
	typed form = iota
	untyped
	metadata
	direct // a watch that the operator has opened itself, over HTTP; it has no informer
)

func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	case runtime.Unstructured:
		return untyped
	}
	return typed
}

// convert returns a copy of the object in this form, after the transform function.
func (f form) convert(obj client.Object, transform toolscache.TransformFunc) (client.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if f == typed || f == formOf(obj) {
		return transformed(obj.DeepCopyObject().(client.Object), transform)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	var made client.Object = &unstructured.Unstructured{Object: content}
	if f == metadata {
		made = &metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, made); err != nil {
			return nil, err
		}
	}
	made.GetObjectKind().SetGroupVersionKind(gvk)
	return transformed(made, transform)
}

// AddEventHandler registers a handler, and calls its OnAdd for each object that the cache shows.
func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.Kinds.mu.Lock()
	seen := i.kind.seen
	registered := &registration{handler}
	i.handlers = append(i.handlers, registered)
	i.cache.Kinds.mu.Unlock()
	present, order := map[client.ObjectKey]client.Object{}, []client.ObjectKey(nil)
	for _, c := range i.cache.Kinds.server.Changes(0) {
		if c.GVK.GroupKind() != i.kind.gvk.GroupKind() || c.Revision > seen {
			continue
		}
		if _, known := present[c.Key]; !known {
			order = append(order, c.Key)
		}
		present[c.Key] = c.New
	}
	for _, key := range order {
		obj, err := i.cache.Kinds.server.InVersion(present[key], i.kind.gvk)
		if err != nil {
			return nil, err
		}
		made, err := i.show(obj)
		if err != nil {
			return nil, err
		}
		if made != nil {
			handler.OnAdd(made, true)
		}
	}
	return registered, nil
}

// AddEventHandlerWithResyncPeriod does the same as AddEventHandler: the informer never resyncs.
func (i *informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions does the same as AddEventHandler, and ignores the options.
func (i *informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler removes a handler.
func (i *informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	i.cache.Kinds.mu.Lock()
	defer i.cache.Kinds.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(r *registration) bool { return r == handle })
	return nil
}

// AddIndexers does nothing. Indexes are added by [Cache.IndexField].
func (i *informer) AddIndexers(toolscache.Indexers) error { return nil }

// HasSynced returns true.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker returns a checker that is done.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker {
	return synced{}
}

// IsStopped reports whether the process has ended.
func (i *informer) IsStopped() bool { return i.cache.context.Err() != nil }

// registration is what AddEventHandler returns for a handler.
type registration struct {
	handler toolscache.ResourceEventHandler
}

func (*registration) HasSynced() bool { return true }

func (*registration) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

type synced struct{}

func (synced) Name() string { return "cache in memory" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// handle calls the handler for one change. before is nil if the object did not exist before the change. after is nil if it does not exist
// any more. An object that the cache does not hold, because of its options, counts as nil.
func (h registeredHandler) handle(before, after client.Object) error {
	old, err := h.informer.show(before)
	if err != nil {
		return err
	}
	now, err := h.informer.show(after)
	if err != nil {
		return err
	}
	switch {
	case old != nil && now != nil:
		h.handler.OnUpdate(old, now)
	case now != nil:
		h.handler.OnAdd(now, false)
	case old != nil:
		h.handler.OnDelete(old)
	}
	return nil
}
