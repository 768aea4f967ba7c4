package memoryserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// Change is one write that the server stored.
type Change struct {
	Revision int64 // the revision of the store after the write, and the resource version of New
	GVK      schema.GroupVersionKind
	Key      client.ObjectKey
	Type     watch.EventType // Added, Modified or Deleted

	// Old and New are the object before and after. Old is nil if it was added, New if it was deleted. They have the
	// scheme's Go type, or are unstructured if the scheme has none, and have apiVersion and kind. They are shared: do
	// not change them.
	Old, New client.Object
}

type change struct {
	kind          *kind.Kind
	key           client.ObjectKey
	before, after *version
}

func (c *change) eventType() watch.EventType {
	switch {
	case c.before == nil:
		return watch.Added
	case c.after.object == nil:
		return watch.Deleted
	}
	return watch.Modified
}

// Revision returns the revision of the last write to any kind. A write that changes nothing has no revision.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision()
}

// Changes returns the writes after a revision, in order.
func (s *Server) Changes(since int64) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(max(since-firstRevision, 0), int64(len(s.history)))
	changes := make([]Change, 0, int64(len(s.history))-from)
	for _, c := range s.history[from:] {
		if c == nil {
			continue // skipped by Advance
		}
		changes = append(changes, Change{
			Revision: c.after.revision, GVK: c.kind.GVK, Key: c.key, Type: c.eventType(),
			Old: s.sharedView(c.kind, c.before), New: s.sharedView(c.kind, c.after),
		})
	}
	return changes
}

// Advance skips revisions and generated names up to the given revision. It does nothing if the server has passed it already.
// The next write then has the same resource version, however many writes came before, and so has the next generated name.
// Runs can then be compared although objects contain resource versions or names of others.
func (s *Server) Advance(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.revision() < revision {
		s.differs = s.differs || !s.isEarlierSkip()
		s.history = append(s.history, nil)
	}
	s.skipped = max(s.skipped, uint64(max(revision, 0)))
}
