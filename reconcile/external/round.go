package external

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// round is what passes over an object have done of its things. If the turn of a pass is over, or the quota is used up, a later pass goes on with
// the things that are not done. It lives in memory: after a start, an error or a change of what is desired, all things are looked at again.
type round[S any] struct {
	of      synced // what is desired
	request string // the last request of a person
	keys    []string
	begun   time.Time
	done    map[string]*candidate[S] // by key: what is as desired, for Ready
	behind  bool                     // see pass
}

// isOf reports whether a round is of what is desired now.
func (r *round[S]) isOf(now *round[S]) bool {
	return r != nil && r.of == now.of && r.request == now.request && slices.Equal(r.keys, now.keys)
}

// open returns the desired keys whose things are not done yet.
func (r *round[S]) open() (keys []string) {
	for _, key := range r.keys {
		if r.done[key] == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// observed returns what was observed of the things that are done.
func (r *round[S]) observed() (all []S) {
	for _, key := range r.keys {
		if f := r.done[key]; f != nil && f.observed != nil {
			all = append(all, *f.observed)
		}
	}
	return all
}

// mark notes that things are done.
func (r *round[S]) mark(found ...*candidate[S]) {
	for _, f := range found {
		r.done[f.key] = f
	}
}

// rounds are the rounds that go on in a later pass.
type rounds[S any] struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*round[S]
}

// get returns the round of an object, or a fresh one if there is none of what is desired now.
func (r *rounds[S]) get(name types.NamespacedName, fresh *round[S]) *round[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byName[name]; known.isOf(fresh) {
		return known
	}
	return fresh
}

func (r *rounds[S]) set(name types.NamespacedName, one *round[S]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[types.NamespacedName]*round[S]{}
	}
	r.byName[name] = one
}

func (r *rounds[S]) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}
