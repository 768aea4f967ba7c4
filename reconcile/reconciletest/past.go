package reconciletest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// past is how the cache of the process that is started next shows a kind at first.
type past struct {
	kind     schema.GroupVersionKind
	revision int64
	change   string // that it does not show yet
}

// past gives what the next process sees of a kind at a revision; nil if the kind is not watched.
func (c *processCache) past(kind schema.GroupVersionKind, revision int64) *past {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[kind] == nil {
		return nil // nobody looks
	}
	return &past{kind: kind, revision: revision}
}

// returnTo lets the cache of a process that begins show a kind as it was. All other changes so far are still to come.
func (c *processCache) returnTo(was *past, changes []memoryserver.Change) {
	k := &cachedKind{gvk: was.kind, seen: was.revision, frozen: &freeze{passes: 1, counts: true, asked: 1}}
	for _, change := range changes {
		if change.GVK == was.kind && change.Revision > was.revision {
			k.pending = append(k.pending, change)
		}
	}
	c.kinds[was.kind] = k
}

// plan keeps in mind that the process travels back to before a change when all is quiet.
func (r *run) plan(c *memoryserver.Change) {
	if was := r.process.cache.past(c.GVK, c.Revision-1); was != nil && r.journey == nil {
		name := changeName(c)
		was.change = fmt.Sprintf("%s #%d", name, r.nth[name])
		if c.Old != nil && c.New != nil {
			was.change += " (" + strings.Join(changedPaths(c.Old, c.New), ", ") + ")"
		}
		r.journey = was
		r.strike(TimeTravel, name, r.nth[name])
	}
}

// travel ends the process if the next one is to see the past.
func (r *run) travel() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.journey == nil {
		return false
	}
	r.past, r.journey = r.journey, nil
	r.process.die()
	r.trace.add(row{
		what: "the process ends", fault: string(TimeTravel),
		answer: fmt.Sprintf("the next one sees %s as before: %s", r.past.kind.Kind, r.past.change),
	})
	return true
}
