package fakeapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
)

// store has the things of an API. It also keeps the state before the last write, for reads with an old answer.
type store[V any] struct {
	kind     string
	givesIDs bool
	lag      time.Duration

	mu      sync.Mutex
	given   int                // how many IDs the API has given
	rows    map[string]*row[V] // by ID; deleted things stay
	written time.Time          // the time of the last write
	before  []Thing[V]         // all things before the last write
}

// row is a thing, or a thing that was deleted.
type row[V any] struct {
	now, before *Thing[V] // before: the thing before its last write; nil: it did not exist
	written     time.Time // the time of its last write
	label       string    // the name of the thing in messages and in names of calls
	others      bool
	made        origin
}

// insert adds a thing that exists at the beginning.
func (s *store[V]) insert(t Thing[V], others bool) {
	t.ID = s.newID(t.Name)
	t.Version = 1
	s.put(t.ID, &t)
	r := s.rows[t.ID]
	r.others, r.before, r.written = others, &t, time.Time{}
	s.written, s.before = time.Time{}, nil
}

// newID returns the ID of a new thing. Without GivesIDs it is the name. Otherwise it is a text that occurs nowhere else, so that it can be
// replaced when runs are compared.
func (s *store[V]) newID(name string) string {
	if !s.givesIDs {
		return name
	}
	s.given++
	const spread = 2654435761 // odd, so that the IDs are different
	return fmt.Sprintf("id-%08x", uint32(s.given*spread))
}

// put stores a thing. If to is nil, it removes the thing.
func (s *store[V]) put(id string, to *Thing[V]) {
	if s.rows == nil {
		s.rows = map[string]*row[V]{}
	}
	s.before, s.written = s.all(), time.Now()
	r := s.rows[id]
	if r == nil {
		r = &row[V]{label: s.kind}
		s.rows[id] = r
	}
	if to != nil {
		r.label = s.label(*to)
	}
	r.before, r.now, r.written = r.now, to, s.written
}

// label returns the name of a thing in messages and in names of calls.
func (s *store[V]) label(t Thing[V]) string {
	name := cmp.Or(t.Name, t.Owner)
	if name == "" {
		return s.kind
	}
	return s.kind + " " + name
}

// labelOf returns the name of the thing with the ID in names of calls.
func (s *store[V]) labelOf(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rows[id]; r != nil {
		return r.label
	}
	return s.kind + " " + id
}

// all returns all things, sorted. The caller holds the lock.
func (s *store[V]) all() []Thing[V] {
	var all []Thing[V]
	for _, r := range s.rows {
		if r.now != nil {
			all = append(all, *r.now)
		}
	}
	slices.SortFunc(all, func(a, b Thing[V]) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// isRecent reports whether a write at that time is so recent that a read may still show the state before it.
func (s *store[V]) isRecent(written time.Time) bool {
	return !written.IsZero() && time.Since(written) < s.lag
}

// hasPast reports whether a read may still show an old state of the thing with the ID. The ID "" stands for all things.
func (s *store[V]) hasPast(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		return s.isRecent(s.written)
	}
	r := s.rows[id]
	return r != nil && s.isRecent(r.written) && !reflect.DeepEqual(r.before, r.now)
}

func (s *store[V]) get(ctx context.Context, id string) (Thing[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, call := s.rows[id], outside.FromContext(ctx)
	switch {
	case r == nil:
		return Thing[V]{}, &Error{Status: http.StatusNotFound, About: s.kind + " " + id}
	case call != nil && call.Past && s.isRecent(r.written):
		return r.shown(r.before)
	}
	r.use(call)
	return r.shown(r.now)
}

// shown returns the answer to a read that shows t. If t is nil, the answer is status 404.
func (r *row[V]) shown(t *Thing[V]) (Thing[V], error) {
	if t == nil {
		return Thing[V]{}, &Error{Status: http.StatusNotFound, About: r.label}
	}
	return *t, nil
}

func (s *store[V]) list(ctx context.Context) []Thing[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call := outside.FromContext(ctx); call != nil && call.Past && s.isRecent(s.written) {
		return slices.Clone(s.before)
	}
	return s.all()
}

func (s *store[V]) create(ctx context.Context, t Thing[V]) (Thing[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if t.Token != "" && r.now != nil && r.now.Token == t.Token {
			return *r.now, nil
		}
	}
	if r := s.rows[t.Name]; !s.givesIDs && r != nil && r.now != nil {
		return Thing[V]{}, &Error{Status: http.StatusConflict, About: r.label + " exists"}
	}
	t.ID, t.Version = s.newID(t.Name), 1
	s.put(t.ID, &t)
	r := s.rows[t.ID]
	r.others, r.made = false, origin{}
	if call := outside.FromContext(ctx); call != nil {
		r.made = origin{byOperator: true, object: call.Object, pass: call.Pass}
		r.use(call)
	}
	return t, nil
}

func (s *store[V]) update(ctx context.Context, t Thing[V]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[s.idOf(t)]
	switch {
	case r == nil || r.now == nil:
		return &Error{Status: http.StatusNotFound, About: s.label(t)}
	case t.Version != 0 && t.Version != r.now.Version:
		return &Error{Status: http.StatusPreconditionFailed, About: r.label}
	}
	t = Thing[V]{r.now.ID, cmp.Or(t.Name, r.now.Name), cmp.Or(t.Owner, r.now.Owner), cmp.Or(t.Token, r.now.Token), t.Fields, r.now.Version}
	if reflect.DeepEqual(t, *r.now) {
		return nil
	}
	t.Version++
	r.change(outside.FromContext(ctx), "changes")
	s.put(t.ID, &t)
	return nil
}

// giveAway makes a thing belong to somebody else than the operator.
func (s *store[V]) giveAway(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id].others, s.rows[id].made = true, origin{}
}

// idOf returns the ID of the thing that an update changes.
func (s *store[V]) idOf(t Thing[V]) string {
	if s.givesIDs {
		return t.ID
	}
	return cmp.Or(t.ID, t.Name)
}

func (s *store[V]) remove(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[id]
	if r == nil || r.now == nil {
		return &Error{Status: http.StatusNotFound, About: s.kind + " " + id}
	}
	r.change(outside.FromContext(ctx), "deletes")
	s.put(id, nil)
	return nil
}
