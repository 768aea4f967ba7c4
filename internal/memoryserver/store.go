package memoryserver

import (
	"cmp"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// firstRevision is that of a server that has stored nothing. A resource version of 0 has a meaning
// of its own.
const firstRevision = 1

// table holds the objects of one kind with all their versions.
type table struct {
	kind    *kind
	records map[client.ObjectKey]*record
	order   []*record // by namespace and name
}

// record is one name, with what it held at which revision. It stays when the object is deleted.
type record struct {
	key      client.ObjectKey
	versions []*version // by revision
}

// version is one state of an object, or its absence. It never changes but for its views.
type version struct {
	revision int64
	object   client.Object // as it is read; nil: deleted
	stored   client.Object // as it was written, with what decoding drops
	views    []client.Object
}

func (t *table) find(key client.ObjectKey) *version {
	if r := t.records[key]; r != nil {
		return r.latest()
	}
	return nil
}

// latest is nil if there is no object.
func (r *record) latest() *version {
	if last := r.versions[len(r.versions)-1]; last.object != nil {
		return last
	}
	return nil
}

// at is what was there at a revision, or nil.
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

// commit stores an object, or with nil its deletion, under the next revision, which it writes into
// the object. The object must not change afterwards. What was written may differ from what is read.
func (s *Server) commit(k *kind, key client.ObjectKey, object, stored client.Object) *version {
	t := s.table(k)
	made := &version{revision: s.revision() + 1, object: object, stored: stored}
	if object != nil {
		object.SetResourceVersion(strconv.FormatInt(made.revision, 10))
		stored.SetResourceVersion(object.GetResourceVersion())
	}
	c := &change{kind: k, key: key, before: t.find(key), after: made}
	t.put(key, made)
	s.history = append(s.history, c)
	s.watchers.tell(s, c)
	return made
}

func (s *Server) revision() int64 { return firstRevision + int64(len(s.history)) }
