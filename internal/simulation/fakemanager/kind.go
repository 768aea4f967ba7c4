package fakemanager

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// kind is a kind that the process watches. The cache's lock guards it.
type kind struct {
	gvk       schema.GroupVersionKind
	selection selection
	seen      int64                 // the revision that the cache shows
	pending   []memoryserver.Change // changes that the cache does not show yet
	frozen    *freeze               // nil: all pending changes can be delivered at once
	asked     bool                  // the operator has read the kind or asked for its informer
	informers []*informer
}

// kind returns a kind of the cache. It starts to watch the kind if that is not watched yet.
func (c *Cache) kind(gvk schema.GroupVersionKind) *kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision := c.received
	if !c.everything {
		revision = c.server.Revision()
	}
	k := c.watchFrom(gvk, revision)
	if !k.asked {
		k.asked = true
		c.watched(gvk, k.selection.watchedNamespaces())
	}
	return k
}

// watchFrom returns a kind of the cache. If the kind is not watched yet, it starts to watch it at the revision. The caller
// holds the lock.
func (c *Cache) watchFrom(gvk schema.GroupVersionKind, revision int64) *kind {
	k := c.kinds[gvk]
	if k == nil {
		k = &kind{gvk: gvk, seen: revision, selection: selectionOf(&c.options, gvk, c.scheme)}
		c.kinds[gvk] = k
	}
	return k
}

// watchEverything makes the cache watch each kind of which it receives a change.
func (c *Cache) watchEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.everything = true
}

// Watches reports whether the process watches the kind.
func (c *Cache) Watches(gvk schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[gvk] != nil
}

// OtherVersion returns the version in which a kind is watched, if that is not the given one. Else it returns "".
func (c *Cache) OtherVersion(gvk schema.GroupVersionKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[gvk] != nil {
		return ""
	}
	for other := range c.kinds {
		if other.GroupKind() == gvk.GroupKind() {
			return other.Version
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
		c.watchFrom(change.GVK, change.Revision-1)
	}
	if k := c.kinds[change.GVK]; k != nil && change.Revision > k.seen {
		k.pending = append(k.pending, change)
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
		if first == nil || k.pending[0].Revision < first.pending[0].Revision {
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

// Behind returns how many changes of the kind the cache does not show yet.
func (c *Cache) Behind(gvk schema.GroupVersionKind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gvk]; k != nil {
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
// reconcile of every object has run. Then those of the changes that are later can be delivered.
func (c *Cache) BeginInThePast(past Past, changes []memoryserver.Change) {
	k := &kind{gvk: past.GVK, seen: past.Revision, frozen: &freeze{from: past.Revision + 1, passes: 1, counts: true, requested: 1, past: true}}
	for _, change := range changes {
		if change.GVK == past.GVK && change.Revision > past.Revision {
			k.pending = append(k.pending, change)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[past.GVK] = k
}

// handlers returns the event handlers of a kind.
func (c *Cache) handlers(k *kind) []registeredHandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []registeredHandler
	informers := slices.SortedFunc(slices.Values(k.informers), func(a, b *informer) int { return cmp.Compare(a.form, b.form) })
	for _, i := range informers {
		for _, h := range i.handlers {
			all = append(all, registeredHandler{i, h.handler})
		}
	}
	return all
}

type registeredHandler struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
}
