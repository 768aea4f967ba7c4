package reconciletest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// cachedKind is a kind that the process has begun to watch.
type cachedKind struct {
	gvk       schema.GroupVersionKind
	selection selection
	seen      int64 // the revision that the cache shows
	pending   []memoryserver.Change
	frozen    *freeze
	informers []*informer
}

// kind gives the kind, and begins to watch it now if it was not watched yet.
func (c *processCache) kind(gvk schema.GroupVersionKind) *cachedKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all {
		return c.watchFrom(gvk, c.noted)
	}
	return c.watchFrom(gvk, c.process.run.server.Revision())
}

func (c *processCache) watchFrom(gvk schema.GroupVersionKind, revision int64) *cachedKind {
	k := c.kinds[gvk]
	if k == nil {
		k = &cachedKind{gvk: gvk, seen: revision, selection: selectionOf(&c.options, gvk, c.process.run.scenario.Scheme)}
		c.kinds[gvk] = k
	}
	return k
}

func (c *processCache) watchEverything() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
}

func (c *processCache) watches(kind schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind] != nil
}

// note takes changes that the process is to hear of.
func (c *processCache) note(changes []memoryserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range changes {
		change := changes[i]
		c.noted = max(c.noted, change.Revision)
		if c.all {
			c.watchFrom(change.GVK, change.Revision-1)
		}
		if k := c.kinds[change.GVK]; k != nil && change.Revision > k.seen {
			k.pending = append(k.pending, change)
		}
	}
}

// next removes the first change that can be delivered.
func (c *processCache) next() (*cachedKind, *memoryserver.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *cachedKind
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

// behind gives how many changes of the kind the cache does not show.
func (c *processCache) behind(gvk schema.GroupVersionKind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gvk]; k != nil {
		return len(k.pending)
	}
	return 0
}

// keys gives the names of all objects of a kind.
func (c *processCache) keys(ctx context.Context, gvk schema.GroupVersionKind) []client.ObjectKey {
	obj, err := c.process.run.scenario.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		c.process.run.fail(fmt.Errorf("list of %s: %w: add it to the scheme", gvk.Kind, err))
		return nil
	}
	list := obj.(client.ObjectList)
	if err := c.List(ctx, list); err != nil {
		c.process.run.fail(fmt.Errorf("list %s: %w", gvk.Kind, err))
		return nil
	}
	var keys []client.ObjectKey
	for _, item := range itemsOf(list) {
		keys = append(keys, client.ObjectKeyFromObject(item))
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
