package memoryserver

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// firstRevision is the revision of an empty store. It is not 0, since the resource version 0 has a special meaning.
const firstRevision = 1

// store has every version of every object. The server's lock protects it.
type store struct {
	tables   map[schema.GroupVersionKind]*table
	order    []*table  // sorted by kind
	history  []*change // the changes of all kinds; revision r is at index r-firstRevision-1, nil if Advance has skipped it
	watchers watchers

	earlier *store // the store of the earlier server whose results are reused; nil: there is none
	differs bool   // the two stores differ at some revision
}

// table has the objects of one kind with all their versions.
type table struct {
	kind    *kind.Kind
	records map[client.ObjectKey]*record
	order   []*record // sorted by namespace and name
}

// record has the versions of the objects of one name. It stays when an object is deleted.
type record struct {
	key      client.ObjectKey
	versions []*version // sorted by revision
}

// version is one state of an object, or its absence. It does not change afterwards, except that views are added when they are first read.
type version struct {
	revision int64
	object   client.Object // as clients read it; nil: deleted
	stored   client.Object // as it was written; decoding may have dropped fields from object
	views    []client.Object
	request  *writeRequest // the request that made it from the previous version; nil: it was not one of these requests
	origin   *version      // the equal version of the earlier server; nil: there is none
}

func (t *table) find(key client.ObjectKey) *version {
	if r := t.records[key]; r != nil {
		return r.latest()
	}
	return nil
}

// latest returns the current version, or nil if the object does not exist.
func (r *record) latest() *version {
	if last := r.versions[len(r.versions)-1]; last.object != nil {
		return last
	}
	return nil
}

// deletions returns how many objects of the name were deleted.
func (t *table) deletions(key client.ObjectKey) (n uint64) {
	if r := t.records[key]; r != nil {
		for _, v := range r.versions {
			if v.object == nil {
				n++
			}
		}
	}
	return n
}

// at returns the version of the object at a revision. It returns nil if the object did not exist then.
func (r *record) at(revision int64) *version {
	i, found := slices.BinarySearchFunc(r.versions, revision, func(v *version, revision int64) int {
		return cmp.Compare(v.revision, revision)
	})
	if !found {
		i--
	}
	if i < 0 || r.versions[i].object == nil {
		return nil
	}
	return r.versions[i]
}

// objects iterates over the existing objects, sorted by namespace and name.
func (t *table) objects(yield func(client.Object) bool) {
	for _, r := range t.order {
		if v := r.latest(); v != nil && !yield(v.object) {
			return
		}
	}
}

func (t *table) put(key client.ObjectKey, v *version) {
	r := t.records[key]
	if r == nil {
		r = &record{key: key}
		t.records[key] = r
		i, _ := slices.BinarySearchFunc(t.order, key, func(r *record, key client.ObjectKey) int { return compareKeys(r.key, key) })
		t.order = slices.Insert(t.order, i, r)
	}
	r.versions = append(r.versions, v)
}

func compareKeys(a, b client.ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// table returns the table of a kind.
func (s *store) table(k *kind.Kind) *table {
	k = k.Storage()
	t := s.tables[k.GVK]
	if t == nil {
		t = &table{kind: k, records: map[client.ObjectKey]*record{}}
		s.tables[k.GVK] = t
		s.order = append(s.order, t)
		slices.SortFunc(s.order, compareKinds)
	}
	return t
}

func compareKinds(a, b *table) int { return cmp.Compare(a.kind.GVK.String(), b.kind.GVK.String()) }

// find returns the current version of an object, or nil if it does not exist.
func (s *store) find(k *kind.Kind, key client.ObjectKey) *version { return s.table(k).find(key) }

// commit stores an object under the next revision, and sets its resource version. If object is nil, it stores a deletion. object is what
// clients read, and stored is what was written. Neither may be changed afterwards.
func (s *store) commit(k *kind.Kind, key client.ObjectKey, object, stored client.Object) *version {
	made := &version{revision: s.revision() + 1, object: object, stored: stored}
	if object != nil {
		object.SetResourceVersion(strconv.FormatInt(made.revision, 10))
		stored.SetResourceVersion(object.GetResourceVersion())
		made.origin = s.originOf(made, k, key)
	}
	s.put(k, key, made)
	return made
}

// remove stores a deletion.
func (s *store) remove(k *kind.Kind, key client.ObjectKey) { s.commit(k, key, nil, nil) }

// put stores a version under the next revision.
func (s *store) put(k *kind.Kind, key client.ObjectKey, made *version) {
	t := s.table(k)
	c := &change{kind: k.Storage(), key: key, before: t.find(key), after: made}
	t.put(key, made)
	s.differs = s.differs || !s.isEarlier(c)
	s.history = append(s.history, c)
	s.watchers.notify(c)
}

func (s *store) revision() int64 { return firstRevision + int64(len(s.history)) }

// Change is one write that the server stored.
type Change struct {
	Revision int64                   // the revision of the store after the write, and the resource version of New
	GVK      schema.GroupVersionKind // in the version that [Server.Canonical] returns
	Key      client.ObjectKey
	Type     watch.EventType // Added, Modified or Deleted

	// Old and New are the object before and after the write. Old is nil if the object was added. New is nil if it was deleted. They have
	// the scheme's Go type, or are unstructured if the scheme has none, and have apiVersion and kind. They are shared: do not change them.
	Old, New client.Object
}

type change struct {
	kind          *kind.Kind // in the storage version
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

// Revision returns the revision of the last write of any kind. A write that changes nothing does not increase it.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.revision()
}

// Changes returns the writes after a revision, in order.
func (s *Server) Changes(since int64) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(max(since-firstRevision, 0), int64(len(s.store.history)))
	var changes []Change // not allocated in advance: most revisions may be skipped
	for _, c := range s.store.history[from:] {
		if c == nil {
			continue // skipped by Advance
		}
		changes = append(changes, Change{
			Revision: c.after.revision, GVK: c.kind.Canonical().GVK, Key: c.key, Type: c.eventType(),
			Old: s.sharedView(c.kind.Canonical(), c.before), New: s.sharedView(c.kind.Canonical(), c.after),
		})
	}
	return changes
}

// Advance skips revisions and generated names up to the given revision. If the server has passed the revision already, it does nothing.
// Afterwards the next resource version and the next generated name do not depend on the number of earlier writes. So runs can be compared
// although objects contain resource versions or names of other objects.
func (s *Server) Advance(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.store.revision() < revision {
		s.store.differs = s.store.differs || !s.store.isEarlierSkip()
		s.store.history = append(s.store.history, nil)
	}
	s.suffixes.skipped = max(s.suffixes.skipped, uint64(max(revision, 0)))
}
