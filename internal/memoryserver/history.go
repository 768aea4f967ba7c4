package memoryserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is one write that the server stored.
type Change struct {
	Revision int64 // of the store after it, and the resource version of New
	GVK      schema.GroupVersionKind
	Key      client.ObjectKey
	Type     watch.EventType // Added, Modified or Deleted

	// Old and New are the object before and after; Old is nil when it was added, New when it was
	// deleted. They have the scheme's Go type, or are unstructured if it has none, and carry
	// apiVersion and kind. They are shared: never write to them.
	Old, New client.Object
}

type change struct {
	kind          *kind
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

// Revision is the number of the last write, of whatever kind. A write that changes nothing has none.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision()
}

// Changes gives what was written after a revision, in order.
func (s *Server) Changes(since int64) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(max(since-firstRevision, 0), int64(len(s.history)))
	changes := make([]Change, 0, int64(len(s.history))-from)
	for _, c := range s.history[from:] {
		if c == nil {
			continue // left out by Advance
		}
		changes = append(changes, Change{
			Revision: c.after.revision, GVK: c.kind.gvk, Key: c.key, Type: c.eventType(),
			Old: s.sharedView(c.kind, c.before), New: s.sharedView(c.kind, c.after),
		})
	}
	return changes
}
