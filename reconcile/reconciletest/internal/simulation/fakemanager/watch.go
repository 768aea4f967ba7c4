package fakemanager

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// openWatch is a watch that the operator has opened itself, over HTTP. [Manager.Deliver] sends changes to it, in one order with the changes
// that the cache shows. A fault that delays the cache's changes also delays these.
type openWatch struct {
	from   int64 // the watch gets only changes after this revision
	handle func(*memoryserver.Change) error
}

// Watch calls handle for each change of a kind after the revision from, as soon as [Manager.Deliver] delivers the change, until stop is
// called. It returns the revision up to which changes were delivered before: the caller has to send the changes between from and that
// revision itself. The watch gets also objects that the options of the cache leave out.
func (c *Cache) Watch(gvk schema.GroupVersionKind, from int64, handle func(*memoryserver.Change) error) (seen int64, stop func()) {
	k := c.Kinds.kind(gvk, direct)
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	w := &openWatch{from: from, handle: handle}
	k.watches = append(k.watches, w)
	return k.seen, func() {
		c.Kinds.mu.Lock()
		defer c.Kinds.mu.Unlock()
		k.watches = slices.DeleteFunc(k.watches, func(other *openWatch) bool { return other == w })
	}
}

// watchesOf returns the watches of a kind that get its last delivered change.
func (c *Cache) watchesOf(k *kind) (all []*openWatch) {
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	for _, w := range k.watches {
		if k.seen > w.from {
			all = append(all, w)
		}
	}
	return all
}
