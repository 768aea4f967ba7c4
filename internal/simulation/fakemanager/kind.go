package fakemanager

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// kind is a kind that the process watches in one form. The cache's lock guards it.
type kind struct {
	gvk       schema.GroupVersionKind
	form      form
	selection selection
	seen      int64                 // the revision that the cache shows
	pending   []memoryserver.Change // changes that the cache does not show yet
	frozen    *freeze               // nil: all pending changes can be delivered at once
	asked     bool                  // the operator has read the kind or asked for its informer
	informer  *informer             // nil if the operator has not asked for it
}

// kindKey is a kind in one form. As in a real cache, each form of a kind has an informer of its own, which may be behind another.
type kindKey struct {
	gvk  schema.GroupVersionKind
	form form
}

// forms are all forms, in the order in which their informers get a change.
var forms = [...]form{typed, untyped, metadata}

// kind returns a kind of the cache. It starts to watch the kind if that is not watched yet.
func (c *Cache) kind(gvk schema.GroupVersionKind, f form) *kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision := c.received
	if !c.everything {
		revision = c.server.Revision()
	}
	k := c.watchFrom(gvk, f, revision)
	if !k.asked {
		k.asked = true
		c.watched(gvk, k.selection.watchedNamespaces())
	}
	return k
}

// watchFrom returns a kind of the cache. If the kind is not watched yet, it starts to watch it at the revision. If the kind is
// watched in another form, both forms show the same at first. The caller holds the lock.
func (c *Cache) watchFrom(gvk schema.GroupVersionKind, f form, revision int64) *kind {
	if k := c.kinds[kindKey{gvk, f}]; k != nil {
		return k
	}
	k := &kind{gvk: gvk, form: f, seen: revision, selection: selectionOf(&c.options, gvk, c.scheme)}
	if others := c.formsOf(gvk); len(others) > 0 {
		k.seen, k.pending, k.frozen = others[0].seen, slices.Clone(others[0].pending), others[0].frozen.clone()
	}
	c.kinds[kindKey{gvk, f}] = k
	return k
}

// formsOf returns a kind in each form in which it is watched. The caller holds the lock.
func (c *Cache) formsOf(gvk schema.GroupVersionKind) (all []*kind) {
	for _, f := range forms {
		if k := c.kinds[kindKey{gvk, f}]; k != nil {
			all = append(all, k)
		}
	}
	return all
}

// watchEverything makes the cache watch each kind as soon as an object of the kind changes.
func (c *Cache) watchEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.everything = true
}

// Watches reports whether the process watches the kind.
func (c *Cache) Watches(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.formsOf(gvk)) > 0
}

// WatchesTwice reports whether the process watches the kind as whole objects and as metadata.
func (c *Cache) WatchesTwice(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var whole, part bool
	for _, k := range c.formsOf(gvk) {
		whole, part = whole || k.asked && k.form != metadata, part || k.asked && k.form == metadata
	}
	return whole && part
}

// Hides reports whether the cache does not hold an object of a kind that it watches, because of its options.
func (c *Cache) Hides(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.formsOf(gvk), func(k *kind) bool { return !k.selection.matches(obj) })
}

// OtherVersion returns the version in which a kind is watched, if that is not the given one. Else it returns "".
func (c *Cache) OtherVersion(gvk schema.GroupVersionKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.formsOf(gvk)) > 0 {
		return ""
	}
	for other := range c.kinds {
		if other.gvk.GroupKind() == gvk.GroupKind() {
			return other.gvk.Version
		}
	}
	return ""
}

// Receive adds a change of the server to the pending ones, if its kind is watched. [Manager.Deliver] makes the cache show
// it.
func (c *Cache) Receive(change memoryserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = max(c.received, change.Revision)
	if c.everything {
		c.watchFrom(change.GVK, typed, change.Revision-1)
	}
	for _, k := range c.formsOf(change.GVK) {
		if change.Revision > k.seen {
			k.pending = append(k.pending, change)
		}
	}
}

// next makes the cache show the oldest change of all kinds, except those that a freeze hides. It returns the change, nil if
// there is none.
func (c *Cache) next() (*kind, *memoryserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *kind
	for _, k := range c.kinds {
		if len(k.pending) == 0 || k.frozen.hides(&k.pending[0]) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(k.pending[0].Revision, first.pending[0].Revision), cmp.Compare(k.form, first.form)) < 0 {
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

// Behind returns how many changes of the kind the cache does not show yet in the form of an object or a list.
func (c *Cache) Behind(gvk schema.GroupVersionKind, as runtime.Object) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[kindKey{gvk, formOf(as)}]; k != nil {
		return len(k.pending)
	}
	return 0
}

// Past is a kind at an earlier revision.
type Past struct {
	GVK      schema.GroupVersionKind
	Revision int64
}

// BeginInThePast makes the cache of a new process show a kind as it was at a revision. The kind is frozen until one
// reconcile of every object has run. Then the later ones of the changes can be delivered.
func (c *Cache) BeginInThePast(past Past, changes []memoryserver.Change) {
	k := &kind{gvk: past.GVK, form: typed, seen: past.Revision, frozen: &freeze{from: past.Revision + 1, passes: 1, counts: true, requested: 1, past: true}}
	for _, change := range changes {
		if change.GVK == past.GVK && change.Revision > past.Revision {
			k.pending = append(k.pending, change)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kindKey{past.GVK, typed}] = k // other forms begin like it
}

// handlers returns the event handlers of a kind.
func (c *Cache) handlers(k *kind) (all []registeredHandler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.informer != nil {
		for _, h := range k.informer.handlers {
			all = append(all, registeredHandler{k.informer, h.handler})
		}
	}
	return all
}

type registeredHandler struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
}
