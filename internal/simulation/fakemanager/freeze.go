package fakemanager

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// freeze keeps a kind in the cache as it is.
type freeze struct {
	passes    int            // of every known object until the cache catches up, unless [Cache.Thaw] is called before
	ran       map[Target]int // passes so far
	merged    bool           // the cache catches up with one event for each object
	counts    bool           // the kind was frozen when the pass began
	requested int            // how often passes of everything known were requested
}

// maxPasses is how many passes of one object end a freeze. Without it, an operator that repairs what the garbage
// collector deletes again would never end.
const maxPasses = 5

// FreezeForPasses keeps a kind as it is until the given number of passes of every known object has run. It reports false
// if the kind is not watched or is frozen already.
func (c *Cache) FreezeForPasses(gvk schema.GroupVersionKind, passes int) bool {
	return c.freeze(gvk, &freeze{passes: passes})
}

// FreezeUntilThaw keeps a kind as it is until [Cache.Thaw] is called. What happened to each object meanwhile is then
// delivered as one event, as after a watch that broke. It reports false if the kind is not watched or is frozen
// already.
func (c *Cache) FreezeUntilThaw(gvk schema.GroupVersionKind) bool {
	return c.freeze(gvk, &freeze{passes: maxPasses, merged: true, requested: maxPasses})
}

func (c *Cache) freeze(gvk schema.GroupVersionKind, f *freeze) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[gvk]
	if k == nil || k.frozen != nil {
		return false
	}
	k.frozen = f
	return true
}

// Thaw ends one freeze, and reports whether there was one.
func (c *Cache) Thaw() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if k.frozen != nil {
			k.thaw()
			return true
		}
	}
	return false
}

// passBegins marks what is frozen: only passes that begin after the change count.
func (c *Cache) passBegins() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if k.frozen != nil {
			k.frozen.counts = true
		}
	}
}

// passEnded counts a pass for what was frozen when it began, and ends the freezes that have lasted long enough.
func (m *Manager) passEnded(t Target) {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	for _, k := range m.cache.kinds {
		f := k.frozen
		if f == nil || !f.counts {
			continue
		}
		if f.ran == nil {
			f.ran = map[Target]int{}
		}
		if f.ran[t]++; f.ran[t] == maxPasses || m.hasRun(f, f.passes) {
			k.thaw()
		}
	}
}

// hasRun reports whether the given number of passes has run since the freeze for every object that is known or enqueued.
func (m *Manager) hasRun(f *freeze, passes int) bool {
	for _, c := range m.controllers {
		if c.queue.Len() > 0 {
			return false
		}
		for request := range c.known {
			if f.ran[Target{c.name, request}] < passes {
				return false
			}
		}
	}
	return true
}

// NextFrozen returns a frozen kind for which another pass of every known object is to be requested, and counts the
// request. It returns "" if there is none.
func (m *Manager) NextFrozen() (kind string) {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	for _, k := range m.cache.kinds {
		if f := k.frozen; f != nil && f.requested < f.passes && m.hasRun(f, f.requested) {
			f.requested++
			return k.gvk.Kind
		}
	}
	return ""
}

func (k *kind) thaw() {
	if k.frozen.merged {
		k.merge()
	}
	k.frozen = nil
}

// merge replaces the pending changes of each object by one, as a new list shows them.
func (k *kind) merge() {
	merged := map[client.ObjectKey]int{}
	var pending []memoryserver.Change
	for _, change := range k.pending {
		i, known := merged[change.Key]
		if !known {
			merged[change.Key] = len(pending)
			pending = append(pending, change)
			continue
		}
		change.Old = pending[i].Old
		pending[i] = change
	}
	last := k.seen
	if len(k.pending) > 0 {
		last = k.pending[len(k.pending)-1].Revision
	}
	k.pending = k.pending[:0]
	for _, change := range pending {
		if change.Old != nil || change.New != nil {
			change.Revision = last // a list shows all at once
			k.pending = append(k.pending, change)
		}
	}
}
