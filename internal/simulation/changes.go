package simulation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// history is what has happened on the server. The run's lock guards it.
type history struct {
	seen    int64                      // the revision up to which changes were observed
	changes []memoryserver.Change      // the changes that were observed
	present map[objectID]client.Object // the objects that exist
	secrets []secretValue              // the values of the Secrets that exist
	known   state.Identities           // the identities of the objects that exist or are gone
}

// add updates the objects that exist by a change.
func (h *history) add(c *memoryserver.Change) {
	if c.New != nil {
		h.known.Add(c.New)
	}
	h.put(objectID{c.GVK, c.Key}, c.New)
}

// put replaces an object. Nil deletes it.
func (h *history) put(id objectID, obj client.Object) {
	if h.present[id] = obj; obj == nil {
		delete(h.present, id)
	}
	if id.kind.Kind == "Secret" {
		h.secrets = secretValuesOf(h.present)
	}
}

// objects returns the objects that exist.
func (h *history) objects() []client.Object {
	all := make([]client.Object, 0, len(h.present))
	for _, obj := range h.present {
		all = append(all, obj)
	}
	return all
}

// observeChanges takes the server's changes since the last call. It injects the fault planned for each, and hands it to
// the cache of the process.
func (r *Run) observeChanges() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.server.Revision()
	changes := r.server.Changes(r.history.seen)
	r.history.seen = max(now, r.history.seen)
	if len(changes) == 0 {
		return
	}
	r.history.seen = max(r.history.seen, changes[len(changes)-1].Revision)
	r.history.changes = append(r.history.changes, changes...)
	for i := range changes {
		r.history.add(&changes[i])
		r.observeChange(&changes[i])
	}
}

func (r *Run) observeChange(c *memoryserver.Change) {
	object := objectID{c.GVK, c.Key}
	name := nameOfChange(c)
	if r.processes.leader == nil { // before the operator starts
		r.plan.count[r.references.nameAt(name, object)]++
		return
	}
	cache := r.processes.leader.manager.Cache()
	if watched := cache.OtherVersion(c.GVK); watched != "" {
		r.failLocked(fmt.Errorf("%s is written in version %s and watched in %s: reconciletest does not convert; use one of them in the scenario and the operator",
			c.GVK.Kind, c.GVK.Version, watched))
	}
	fault, at := r.plan.reach(point{object: object, name: r.references.nameAt(name, object), watched: cache.Watches(c.GVK), twice: cache.WatchesTwice(c.GVK)})
	r.trace.add(row{change: name, changed: c})
	switch fault {
	case kinds.Stale:
		r.freeze(c, fault, at, cache.FreezeForPasses(c, 1))
	case kinds.StaleLong:
		r.freeze(c, fault, at, cache.FreezeForPasses(c, 2))
	case kinds.MissedEvent:
		r.freeze(c, fault, at, cache.FreezeUntilThaw(c))
	case kinds.StaleObjects:
		r.freeze(c, fault, at, cache.FreezeWhole(c))
	case kinds.StaleMetadata:
		r.freeze(c, fault, at, cache.FreezeMetadata(c))
	case kinds.TimeTravel:
		r.planTravel(c, at)
	}
	cache.Receive(*c)
}

// freeze notes that a fault has frozen the change's kind in the cache. frozen is false if the cache could not do so: the
// kind is not watched, or is frozen already.
func (r *Run) freeze(c *memoryserver.Change, fault kinds.Fault, at point, frozen bool) {
	if !frozen {
		return
	}
	r.plan.noteInjected(fault, at)
	r.trace.add(row{what: "  " + at.name, fault: fault, answer: fmt.Sprintf("the cache of %s stays as it is", c.GVK.Kind)})
}

// nameOfChange returns a change as faults and traces name it, such as "modified ConfigMap default/web".
func nameOfChange(c *memoryserver.Change) string {
	verb := map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}[c.Type]
	return verb + " " + c.GVK.Kind + " " + nameOf(c.Key)
}

// timeTravel holds which past a process will see. The run's lock guards it.
type timeTravel struct {
	planned  *past              // begins when the operator has nothing left to do but wait
	next     *past              // the process that starts next sees it
	happened bool               // a process has seen the past
	created  map[types.UID]bool // what the operator created since then: it may delete this when it sees the present
}

// past is the earlier state of a kind that a new process's cache shows at first.
type past struct {
	fakemanager.Past
	change string // describes the first change that the cache does not show
}

// planTravel plans that the next process starts with a cache that shows the kind as it was before the change.
func (r *Run) planTravel(c *memoryserver.Change, at point) {
	if !at.watched || r.timeTravel.planned != nil {
		return
	}
	was := &past{Past: fakemanager.Past{GVK: c.GVK, Revision: c.Revision - 1}, change: fmt.Sprintf("%s #%d", at.name, at.nth)}
	if c.Old != nil && c.New != nil {
		was.change += " (" + strings.Join(state.ChangedPaths(c.Old, c.New), ", ") + ")"
	}
	r.timeTravel.planned = was
	r.plan.noteInjected(kinds.TimeTravel, at)
}

// travelToThePast ends the process if a travel is planned. It reports whether one was.
func (r *Run) travelToThePast() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.timeTravel.planned
	if was == nil {
		return false
	}
	r.timeTravel.next, r.timeTravel.planned = was, nil
	r.processes.leader.die()
	r.trace.add(row{
		what: "the process ends", fault: kinds.TimeTravel,
		answer: fmt.Sprintf("the next one sees %s as before: %s", was.GVK.Kind, was.change),
	})
	return true
}
