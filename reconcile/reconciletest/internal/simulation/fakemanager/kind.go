package fakemanager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// WatchedKinds are the kinds that a process watches, each in one or more forms: Go types, unstructured, metadata or a watch over HTTP.
type WatchedKinds struct {
	scheme  *runtime.Scheme
	server  *memoryserver.Server
	watched func(gvk schema.GroupVersionKind, namespaces []string)

	mu         sync.Mutex // guards the fields below, and the fields of the kinds
	options    cache.Options
	kinds      map[kindKey]*kind
	everything bool  // every kind is watched as soon as one of its objects changes
	received   int64 // the revision of the last received change
}

// kind is a kind that the process watches, in one form.
type kind struct {
	gvk       schema.GroupVersionKind
	form      form
	selection cacheselection.Selection
	seen      int64                 // the revision that the cache shows
	pending   []memoryserver.Change // changes that the cache does not show yet, as the server reports them
	frozen    *freeze               // nil: all pending changes can be delivered at once
	asked     bool                  // the operator has read the kind or asked for its informer
	informer  *informer             // nil if the operator has not asked for it
	watches   []*openWatch          // only in the form direct
}

// kindKey identifies a kind in one form. As in a real cache, each form has an informer of its own, which may be behind another one.
type kindKey struct {
	gvk  schema.GroupVersionKind
	form form
}

// hold returns an object in the form in which the cache holds it. If the cache does not hold it because of its options, hold returns nil.
// It may change obj.
func (k *kind) hold(obj client.Object) (client.Object, error) {
	if !k.selection.Holds(obj) {
		return nil, nil
	}
	return transformed(obj, k.selection.Transform)
}

// forms are all forms, in the order in which their informers get a change.
var forms = [...]form{typed, untyped, metadata, direct}

// kind returns a kind of the cache in a form. If the kind is not watched yet in that form, it starts to watch it.
func (w *WatchedKinds) kind(gvk schema.GroupVersionKind, f form) *kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	revision := w.received
	if !w.everything {
		revision = w.server.Revision()
	}
	k := w.watchFrom(gvk, f, revision)
	if !k.asked {
		k.asked = true
		w.watched(gvk, k.selection.WatchedNamespaces())
	}
	return k
}

// watchFrom returns a kind of the cache in a form. If the kind is not watched yet in that form, it starts to watch it from the revision on.
// If it is watched in another form or version, the new watch begins in the same state as that one. The caller holds the lock.
func (w *WatchedKinds) watchFrom(gvk schema.GroupVersionKind, f form, revision int64) *kind {
	if k := w.kinds[kindKey{gvk, f}]; k != nil {
		return k
	}
	k := &kind{gvk: gvk, form: f, seen: revision}
	if f != direct { // the options apply only to the manager's cache
		k.selection = cacheselection.ForKind(&w.options, gvk, w.scheme)
	}
	if others := w.formsOf(gvk); len(others) > 0 {
		k.seen, k.pending, k.frozen = others[0].seen, slices.Clone(others[0].pending), others[0].frozen.clone()
	}
	w.kinds[kindKey{gvk, f}] = k
	return k
}

// formsOf returns the kind in all forms and versions in which it is watched, sorted by form and version. The caller holds the lock.
func (w *WatchedKinds) formsOf(gvk schema.GroupVersionKind) (all []*kind) {
	for key, k := range w.kinds {
		if key.gvk.GroupKind() == gvk.GroupKind() {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, (*kind).compare)
	return all
}

// compare orders forms and versions of one kind, as [cmp.Compare] does.
func (k *kind) compare(other *kind) int {
	return cmp.Or(cmp.Compare(k.form, other.form), cmp.Compare(k.gvk.Version, other.gvk.Version))
}

// watchEverything makes the cache watch each kind as soon as one of its objects changes.
func (w *WatchedKinds) watchEverything() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.everything = true
}

// Watches reports whether the process watches the kind.
func (w *WatchedKinds) Watches(gvk schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.formsOf(gvk)) > 0
}

// WatchesTwice reports whether the process watches the kind as whole objects and as metadata.
func (w *WatchedKinds) WatchesTwice(gvk schema.GroupVersionKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var whole, part bool
	for _, k := range w.formsOf(gvk) {
		whole, part = whole || k.asked && k.form != metadata, part || k.asked && k.form == metadata
	}
	return whole && part
}

// selectionOf returns the rule that says which objects of a kind the cache holds.
func (w *WatchedKinds) selectionOf(gvk schema.GroupVersionKind) cacheselection.Selection {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cacheselection.ForKind(&w.options, gvk, w.scheme)
}

// Hides reports whether the cache's options leave out an object of a kind that it watches.
func (w *WatchedKinds) Hides(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.formsOf(gvk), func(k *kind) bool { return !k.selection.Holds(obj) })
}

// Receive adds a change of the server to the pending changes, if its kind is watched. The cache shows it after [Manager.Deliver].
func (w *WatchedKinds) Receive(change memoryserver.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = max(w.received, change.Revision)
	if w.everything {
		w.watchFrom(change.GVK, typed, change.Revision-1)
	}
	for _, k := range w.formsOf(change.GVK) {
		if change.Revision > k.seen {
			k.pending = append(k.pending, change)
		}
	}
}

// next makes the cache show the oldest pending change of all kinds, except changes that a freeze hides. It returns the change. If there is
// none, it returns nil.
func (w *WatchedKinds) next() (*kind, *memoryserver.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first *kind
	for _, k := range w.kinds {
		if len(k.pending) == 0 || k.frozen.hides(&k.pending[0]) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(k.pending[0].Revision, first.pending[0].Revision), k.compare(first)) < 0 {
			first = k
		}
	}
	if first == nil {
		return nil, nil
	}
	change := first.pending[0]
	first.pending = first.pending[1:]
	first.seen = change.Revision
	return first, &change
}

// Behind returns how many changes of the kind the cache does not show yet. as is an object or a list of the form that is read.
func (w *WatchedKinds) Behind(gvk schema.GroupVersionKind, as runtime.Object) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.kinds[kindKey{gvk, formOf(as)}]; k != nil {
		return len(k.pending)
	}
	return 0
}

// Restrict limits the cache to the namespaces and labels of the options, and applies their transform functions. It ignores all other
// options. It must be called before the first read.
func (w *WatchedKinds) Restrict(options cache.Options) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.options = options
	for _, k := range w.kinds {
		if k.form != direct {
			k.selection = cacheselection.ForKind(&w.options, k.gvk, w.scheme)
		}
	}
}

// Past is a kind, and an earlier revision of it.
type Past struct {
	GVK      schema.GroupVersionKind
	Revision int64
}

// BeginInThePast makes the cache of a new process show a kind at an earlier revision. The kind is frozen until every object has had one
// pass. Then the changes after the revision can be delivered.
func (w *WatchedKinds) BeginInThePast(past Past, changes []memoryserver.Change) {
	k := &kind{gvk: past.GVK, form: typed, seen: past.Revision, frozen: &freeze{from: past.Revision + 1, passes: 1, counts: true, requested: 1, past: true}}
	for _, change := range changes {
		if change.GVK.GroupKind() == past.GVK.GroupKind() && change.Revision > past.Revision {
			k.pending = append(k.pending, change)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[kindKey{past.GVK, typed}] = k // other forms that are watched later begin in the same state
}

// handlers returns the event handlers of a kind.
func (w *WatchedKinds) handlers(k *kind) (all []registeredHandler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.informer != nil {
		for _, h := range k.informer.handlers {
			all = append(all, registeredHandler{k.informer, h.handler})
		}
	}
	return all
}

// show calls the event handlers and the watches of a kind with a change. The objects are converted to the version in which the kind is
// watched.
func (c *Cache) show(k *kind, change *memoryserver.Change) error {
	handlers, watches := c.Kinds.handlers(k), c.watchesOf(k)
	if len(handlers)+len(watches) == 0 {
		return nil
	}
	before, err := c.Kinds.server.InVersion(change.Old, k.gvk)
	if err != nil {
		return fmt.Errorf("it cannot be shown in version %s: %w", k.gvk.Version, err)
	}
	after, err := c.Kinds.server.InVersion(change.New, k.gvk)
	if err != nil {
		return fmt.Errorf("it cannot be shown in version %s: %w", k.gvk.Version, err)
	}
	shown := *change
	shown.GVK, shown.Old, shown.New = k.gvk, before, after
	var errs []error
	for _, h := range handlers {
		errs = append(errs, h.handle(before, after))
	}
	for _, w := range watches {
		errs = append(errs, w.handle(&shown))
	}
	return errors.Join(errs...)
}

type registeredHandler struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
}
