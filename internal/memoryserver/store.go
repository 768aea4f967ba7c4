package memoryserver

import (
	"cmp"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// firstRevision is the revision of an empty store. The resource version 0 has a meaning of its own.
const firstRevision = 1

// table has the objects of one kind with all their versions.
type table struct {
	kind    *kind.Kind
	records map[client.ObjectKey]*record
	order   []*record // by namespace and name
}

// record has the versions of one name. It stays when the object is deleted.
type record struct {
	key      client.ObjectKey
	versions []*version // by revision
}

// version is one state of an object, or its absence. Only its views change: they are made when they are first read.
type version struct {
	revision int64
	object   client.Object // as clients read it; nil: deleted
	stored   client.Object // as it was written, with fields that decoding drops
	views    []client.Object
	request  *writeRequest // the request that made it from the version before; nil: another kind of request
	origin   *version      // the equal version of the earlier server; nil: none
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

// deletions returns how many objects of the name are gone.
func (r *record) deletions() (n uint64) {
	for _, v := range r.versions {
		if v.object == nil {
			n++
		}
	}
	return n
}

// at returns the version at a revision, or nil if the object did not exist.
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

// objects iterates over the objects that exist, by namespace and name.
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

// commit stores an object, or its deletion if it is nil, under the next revision, and sets the object's resource
// version. Nobody may change the object afterwards. object is what clients read, stored what was written.
func (s *Server) commit(k *kind.Kind, key client.ObjectKey, object, stored client.Object) *version {
	made := &version{revision: s.revision() + 1, object: object, stored: stored}
	if object != nil {
		object.SetResourceVersion(strconv.FormatInt(made.revision, 10))
		stored.SetResourceVersion(object.GetResourceVersion())
		made.origin = s.originOf(made, k, key)
	}
	s.put(k, key, made)
	return made
}

// put stores a version under the next revision.
func (s *Server) put(k *kind.Kind, key client.ObjectKey, made *version) {
	t := s.table(k)
	c := &change{kind: k, key: key, before: t.find(key), after: made}
	t.put(key, made)
	s.differs = s.differs || !s.isEarlier(c)
	s.history = append(s.history, c)
	s.watchers.notify(s, c)
}

func (s *Server) revision() int64 { return firstRevision + int64(len(s.history)) }
