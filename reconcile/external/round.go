package external

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// round is the work on all things of an object, which may take several passes. If a pass has made its number of calls, or the quota is
// used up, a later pass continues with the things that are not done. A round is only in memory: after a restart, an error or a
// change of the desired state, a new round begins, which observes all things again.
type round[S any] struct {
	of      synced // the desired state for which the round is
	request string // the last request of a person for a pass
	keys    []string
	begun   time.Time
	done    map[string]*candidate[S] // by key: the things that are as desired; Ready is called for them
	behind  bool                     // see the field of pass
}

// isOf reports whether the round is for the same desired state, keys and request as now.
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

// observed returns the observed states of the things that are done.
func (r *round[S]) observed() (all []S) {
	for _, key := range r.keys {
		if f := r.done[key]; f != nil && f.observed != nil {
			all = append(all, *f.observed)
		}
	}
	return all
}

// mark records that things are done.
func (r *round[S]) mark(found ...*candidate[S]) {
	for _, f := range found {
		r.done[f.key] = f
	}
}

// rounds has the rounds that a later pass continues.
type rounds[S any] struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*round[S]
}

// get returns the round of an object for the present desired state. If there is none, it returns fresh.
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
