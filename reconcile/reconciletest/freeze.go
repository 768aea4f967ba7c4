package reconciletest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// freeze keeps a kind in a process's cache as it is.
type freeze struct {
	passes int          // over every object known, before the cache catches up, unless all is quiet before
	ran    map[over]int // so far
	merged bool         // what happened meanwhile comes as one event an object
	counts bool         // it was frozen when the pass began
	asked  int          // how often passes over everything known were asked for
}

// mostPasses is how many over one object end a freeze: an operator that repairs what the garbage
// collector takes away again would otherwise go on for ever.
const mostPasses = 5

// note takes the server's changes since the last call: it names them, freezes what a fault is
// planned for, and leaves them to the process.
func (r *run) note() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.server.Revision()
	changes := r.server.Changes(r.seen)
	r.seen = max(now, r.seen)
	if len(changes) == 0 {
		return
	}
	r.seen = max(r.seen, changes[len(changes)-1].Revision)
	r.changes = append(r.changes, changes...)
	for i := range changes {
		key := madeKey{changes[i].GVK, changes[i].Key}
		if r.present[key] = changes[i].New; changes[i].New == nil {
			delete(r.present, key)
		}
		name := changeName(&changes[i])
		r.nth[name]++
		if r.process == nil {
			continue
		}
		if watched := r.process.cache.otherVersion(changes[i].GVK); watched != "" {
			r.failLocked(fmt.Errorf("%s is written in version %s and watched in %s: reconciletest does not convert; use one of them in the scenario and the operator",
				changes[i].GVK.Kind, changes[i].GVK.Version, watched))
		}
		r.points = append(r.points, point{name: name, nth: r.nth[name], watched: r.process.cache.watches(changes[i].GVK)})
		r.trace.add(row{change: name})
		switch fault := r.planned(name, r.nth[name]); fault {
		case Stale:
			r.freeze(&changes[i], fault, &freeze{passes: 1})
		case StaleLong:
			r.freeze(&changes[i], fault, &freeze{passes: 2})
		case MissedEvent:
			r.freeze(&changes[i], fault, &freeze{passes: mostPasses, merged: true, asked: mostPasses})
		case TimeTravel:
			r.plan(&changes[i])
		}
		r.process.cache.note(changes[i : i+1])
	}
}

func changeName(c *memoryserver.Change) string {
	verb := map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}[c.Type]
	return verb + " " + c.GVK.Kind + " " + nameOf(c.Key)
}

func (r *run) freeze(c *memoryserver.Change, fault FaultKind, f *freeze) {
	cache := r.process.cache
	cache.mu.Lock()
	defer cache.mu.Unlock()
	k := cache.kinds[c.GVK]
	if k == nil || k.frozen != nil {
		return // nobody looks
	}
	k.frozen = f
	r.strike(fault, changeName(c), r.nth[changeName(c)])
	r.trace.add(row{what: "  " + changeName(c), fault: string(fault), answer: fmt.Sprintf("the cache of %s stays as it is", c.GVK.Kind)})
}

// passBegins marks what is frozen: only passes that begin later than the change count.
func (c *processCache) passBegins() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if k.frozen != nil {
			k.frozen.counts = true
		}
	}
}

// passEnded counts a pass against what was frozen when it began.
func (p *Process) passEnded(o over) {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	for _, k := range p.cache.kinds {
		f := k.frozen
		if f == nil || !f.counts {
			continue
		}
		if f.ran == nil {
			f.ran = map[over]int{}
		}
		if f.ran[o]++; f.ran[o] == mostPasses || p.hasRun(f, f.passes) {
			k.thaw()
		}
	}
}

// hasRun reports whether enough passes over every object that is known, or about to be, have run since the freeze.
func (p *Process) hasRun(f *freeze, passes int) bool {
	for _, c := range p.controllers {
		if c.queue.Len() > 0 {
			return false
		}
		for request := range c.known {
			if f.ran[over{c.name, request}] < passes {
				return false
			}
		}
	}
	return true
}

// ask reports whether a kind is frozen for which more passes have to be asked for.
func (p *Process) ask() (kind string) {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	for _, k := range p.cache.kinds {
		if f := k.frozen; f != nil && f.asked < f.passes && p.hasRun(f, f.asked) {
			f.asked++
			return k.gvk.Kind
		}
	}
	return ""
}

// thaw lets a kind that is frozen go on, and reports whether there was one.
func (c *processCache) thaw() bool {
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

func (k *cachedKind) thaw() {
	if k.frozen.merged {
		k.merge()
	}
	k.frozen = nil
}

// merge makes one change of all that are pending for an object, as a new list shows them.
func (k *cachedKind) merge() {
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
