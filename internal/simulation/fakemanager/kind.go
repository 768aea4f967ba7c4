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
	pending   []memoryserver.Change // that the cache does not show yet
	frozen    *freeze               // nil: pending changes can be delivered
	informers []*informer
}

// kind returns the kind, and begins to watch it if it was not watched before.
func (c *Cache) kind(gvk schema.GroupVersionKind) *kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.everything {
		return c.watchFrom(gvk, c.received)
	}
	return c.watchFrom(gvk, c.server.Revision())
}

func (c *Cache) watchFrom(gvk schema.GroupVersionKind, revision int64) *kind {
	k := c.kinds[gvk]
	if k == nil {
		k = &kind{gvk: gvk, seen: revision, selection: selectionOf(&c.options, gvk, c.scheme)}
		c.kinds[gvk] = k
	}
	return k
}

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

// OtherVersion returns the version in which the kind is watched if it is not watched in the given one, else "".
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

// Receive takes a change of the server. The cache shows it when it is delivered.
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

// next shows the oldest change that can be delivered, and returns it.
func (c *Cache) next() (*kind, *memoryserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *kind
	for _, k := range c.kinds {
		if len(k.pending) == 0 || k.frozen != nil {
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

// Behind returns how many changes of the kind the cache does not show.
func (c *Cache) Behind(gvk schema.GroupVersionKind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gvk]; k != nil {
		return len(k.pending)
	}
	return 0
}

// Past is how a kind was at a revision.
type Past struct {
	GVK      schema.GroupVersionKind
	Revision int64
}

// BeginInThePast has the cache of a new process show a kind as it was. The kind stays as it is while one reconcile of
// every known object runs; then the later ones of the changes are delivered.
func (c *Cache) BeginInThePast(past Past, changes []memoryserver.Change) {
	k := &kind{gvk: past.GVK, seen: past.Revision, frozen: &freeze{passes: 1, counts: true, requested: 1}}
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
			all = append(all, registeredHandler{i, h})
		}
	}
	return all
}

type registeredHandler struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
}
