package fakeapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/outside"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// origin says how a thing was created and who uses it.
type origin struct {
	byOperator bool
	object     request.ObjectID // the object whose pass has created the thing; the zero value: it is not known
	pass       int
	users      []request.ObjectID // the objects whose passes have created, read or changed the thing
}

// when says when the thing was created.
func (o origin) when() string {
	if o.pass == 0 {
		return "outside of a pass"
	}
	return fmt.Sprintf("in pass %d", o.pass)
}

// change notes that a call changes the thing. If the thing belongs to somebody else, it notes in the call that this is wrong. If the user
// makes the change, call is nil.
func (r *row[V]) change(call *outside.Call, verb string) {
	switch {
	case call == nil:
	case r.others:
		call.Foreign = fmt.Sprintf("%s %s, which belongs to others", verb, r.label)
	case r.use(call) && r.made.byOperator && call.Object != request.ObjectID{}:
		r.made.object = call.Object // the thing may have been handed over to another object
	}
}

// use notes that a call reads or changes the thing. It always returns true.
func (r *row[V]) use(call *outside.Call) bool {
	if call != nil && call.Object != (request.ObjectID{}) && !slices.Contains(r.made.users, call.Object) {
		r.made.users = append(r.made.users, call.Object)
	}
	return true
}

// judge implements [outside.API]: the engine of reconciletest asks it what is wrong in the API.
type judge[V any] struct{ store *store[V] }

var _ outside.API = judge[int]{}

// Identities implements [outside.API].
func (j judge[V]) Identities() (pairs []string) {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if !j.store.givesIDs {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(j.store.rows)) {
		of := "<id of " + j.store.rows[id].label + ">"
		if j.store.rows[id].now == nil {
			of = "<id of an earlier " + j.store.rows[id].label + ">"
		}
		pairs = append(pairs, id, of)
	}
	return pairs
}

// Twice implements [outside.API].
func (j judge[V]) Twice() (lines []string) {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	passes := map[string][]string{} // the passes in which the things of each name and object were created
	for _, r := range j.store.rows {
		if r.now == nil || !r.made.byOperator {
			continue
		}
		of := r.label + ", for the owner " + r.now.Owner
		switch {
		case r.made.object != request.ObjectID{}:
			of = r.label + ", for " + r.made.object.String()
		case r.now.Owner == "":
			continue // no pass has created it and it names no owner, so it is not judged
		}
		passes[of] = append(passes[of], r.made.when())
	}
	for _, of := range slices.Sorted(maps.Keys(passes)) {
		if created := passes[of]; len(created) > 1 {
			slices.Sort(created)
			lines = append(lines, of+": created "+strings.Join(created, " and "))
		}
	}
	return lines
}

// Orphans implements [outside.API].
func (j judge[V]) Orphans(exists func(request.ObjectID) bool) (lines []string) {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	for _, r := range j.store.rows {
		if r.now != nil && r.made.byOperator && len(r.made.users) > 0 && !slices.ContainsFunc(r.made.users, exists) {
			lines = append(lines, fmt.Sprintf("%s, created %s for %s", r.label, r.made.when(), r.made.object))
		}
	}
	slices.Sort(lines)
	return lines
}

// state returns the state that comparisons of runs see.
func (s *store[V]) state() any {
	type shown struct {
		Name   string `json:"name,omitempty"`
		Owner  string `json:"owner,omitempty"`
		Fields V      `json:"fields,omitzero"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []shown
	for _, t := range s.all() {
		all = append(all, shown{t.Name, t.Owner, t.Fields})
	}
	return all
}
